// Images that only the Docker of the machine has: built, deployed, rebuilt under the same name, rolled back to.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '../../src/lib/clock.ts';
import { createIds } from '../../src/lib/ids.ts';
import { insertAccount } from '../../src/tokens/admin-token.ts';
import { createToken } from '../../src/tokens/create-token.ts';
import { type Result, startApp, type TestApp } from '../helpers/app.ts';
import { cli, envOf } from '../helpers/cli.ts';
import { dockerMissing, startDocker, type TestDocker } from '../helpers/docker.ts';
import { buildImage } from '../helpers/images.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

describe('an image that only the local Docker has', { skip: dockerMissing }, () => {
  let docker: TestDocker;
  let t: TestApp;
  let shop: Shop;
  let env: Record<string, string>;
  let firstId: string;

  before(async () => {
    docker = await startDocker();
    t = await startApp({ tokenLimit: 1_000_000, env: { SLUICE_REGIONS: `local=docker:${docker.socket}` } });
    shop = await Shop.open(t.url);
    env = { ...envOf(t.url), SLUICE_PROJECT: shop.project };
  });
  after(async () => {
    await t?.stop();
    await docker?.stop();
  });

  const idOf = async (name: string) => (await docker.client.getImage(name).inspect()).Id;

  test('docker build and sluice deploy, nothing else: it is used as it is, by its id', async () => {
    await buildImage(docker, 'web', { repository: 'shop', says: 'first' });
    firstId = await idOf('shop:latest');
    const { code, stdout, stderr } = await cli(['deploy', 'shop', '--json'], env);
    assert.equal(code, 0, stdout + stderr);
    const { pull, local, digest, image } = JSON.parse(stdout);
    assert.deepEqual([pull, local, digest, image], ['missing', true, firstId, 'shop']);
    assert.equal((await shop.visit()).image, 'first');
    assert.match(
      (await cli(['deployments', 'show', 'r1'], env)).stdout,
      /image id +sha256:[0-9a-f]{64} \(local, not pulled\)/,
    );
  });

  test('built again under the same name, the next deployment takes the new one; a rollback finds the old one', async () => {
    await buildImage(docker, 'web', { repository: 'shop', says: 'second' });
    assert.notEqual(await idOf('shop:latest'), firstId);
    await shop.released('shop', { pull: 'missing' });
    assert.equal((await shop.visit()).image, 'second');
    // What nothing is named after is what people clean up.
    await docker.client.pruneImages();
    const { code, stderr } = await cli(['rollback'], env);
    assert.equal(code, 0, stderr);
    assert.equal((await shop.visit()).image, 'first');
    const { local, digest } = await shop.revision('r3');
    assert.deepEqual([local, digest], [true, firstId]);
  });

  test('redeploy keeps the image by its id, too', async () => {
    const { code, stderr } = await cli(['redeploy'], env);
    assert.equal(code, 0, stderr);
    assert.equal((await shop.visit()).image, 'first');
  });

  test('always asks the registry, as before', async () => {
    const { body } = await shop.api('POST', '/deployments', {
      environment: 'production',
      image: '127.0.0.1:9/shop:latest',
    });
    const ended = await shop.reaches(body.id, 'failed');
    assert.deepEqual([ended.state, ended.local, ended.pull], ['failed', false, 'always']);
    assert.equal(ended.failure?.code, 'registry_unreachable');
  });

  test('once the image is gone, a rollback to it says so', async () => {
    await buildImage(docker, 'web', { repository: 'shop', says: 'third' });
    await shop.released('shop', { pull: 'missing' });
    const names = (await docker.client.getImage(firstId).inspect()).RepoTags;
    for (const name of names) await docker.client.getImage(name).remove({ force: true });
    const { code, stdout } = await cli(['rollback', 'r1'], env);
    assert.equal(code, 1);
    assert.match(stdout, /was only on the machine of this engine, and is no longer there; .* \(image_not_found\)/);
    assert.doesNotMatch(stdout, /Is the name right/);
    assert.equal((await shop.visit()).image, 'third');
  });

  test('another account gets none of them: not by name, not by the name they are kept under', async () => {
    const ids = createIds(systemClock);
    const { secret } = await t.app.store.db.transaction().execute(async (tx) => {
      const accountId = await insertAccount(tx, ids, 'Tenant', Date.now());
      return createToken(tx, { ids, clock: systemClock }, { accountId, name: 'theirs', scopes: ['*'] });
    });
    const call = (method: string, path: string, body?: object) => t.call(method, path, { token: secret, body });
    const project = (await call('POST', '/v1/projects', { name: 'Theirs' })).body.id;
    const kept = `sluice.local/image:${(await idOf('shop:latest')).slice('sha256:'.length)}`;
    await buildImage(docker, 'web', { repository: '127.0.0.1:9/shop', says: 'secret' });
    for (const image of ['127.0.0.1:9/shop:latest', kept]) {
      const { status, body } = await call('POST', `/v1/projects/${project}/deployments`, {
        ...{ environment: 'production', image, pull: 'missing' },
      });
      assert.equal(status, 201);
      const ended = await ends(call, project, body.id);
      assert.equal(ended.state, 'failed', image);
      assert.match(ended.failure.code, /^(registry_unreachable|image_not_found|image_denied)$/);
    }
  });
});

async function ends(call: (method: string, path: string) => Promise<Result>, project: string, id: string) {
  return until(
    'the end',
    async () => {
      const { body } = await call('GET', `/v1/projects/${project}/deployments/${id}`);
      return body.finished_at === null ? undefined : body;
    },
    60_000,
  );
}
