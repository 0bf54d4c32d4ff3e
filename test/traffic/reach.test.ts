// A router that cannot reach the instances of a region says so: in its log, and in /readyz, which stays 200.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startApp } from '../helpers/app.ts';
import { freePort } from '../helpers/free-port.ts';
import { until } from '../helpers/wait.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'sluice-reach-'));
after(() => rmSync(dataDir, { recursive: true, force: true }));
const env = { SLUICE_DATA_DIR: dataDir, SLUICE_REGIONS: 'near=standin:,far=standin:' };

async function listening(port: number): Promise<number> {
  const server = createServer().listen(port, '127.0.0.1');
  after(() => server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

test('said soon after the start, for the region it is true of, and no longer once it is reached', async () => {
  const port = await freePort();
  const seeding = await startApp({ env: { ...env, SLUICE_ROLES: 'api' } });
  const { id } = (await seeding.call('POST', '/v1/projects', { body: { name: 'Shop' } })).body;
  const instance = { project_id: id, environment: 'production', revision: 1, state: 'healthy' as const };
  const row = { ...instance, host: '127.0.0.1', created_at: 0, state_since: 0 };
  await seeding.app.store.db
    .insertInto('instance')
    .values([
      { ...row, id: 'ins_near', region: 'near', port: await listening(0) },
      { ...row, id: 'ins_gone', region: 'near', port },
      { ...row, id: 'ins_far', region: 'far', port },
    ])
    .execute();
  await seeding.stop();

  const router = await startApp({ env: { ...env, SLUICE_ROLES: 'router' } });
  const readyz = async () => {
    const response = await fetch(`${router.url}/readyz`);
    assert.equal(response.status, 200);
    return response.text();
  };
  const said = await until('it to say so', async () => {
    const text = await readyz();
    return text !== 'ok\n' && text;
  });
  assert.match(
    said,
    /^ok\nregion far: this router reaches none of its instances \(connect ECONNREFUSED 127.0.0.1:\d+\)\n$/,
  );
  await listening(port);
  await until('it to reach it', async () => (await readyz()) === 'ok\n', 30_000);
  await router.stop();
});
