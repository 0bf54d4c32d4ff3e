// The container image, built and run with a real Docker engine the way the manifests of deploy/kubernetes run it.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Container, ImageInspectInfo } from 'dockerode';
import { adminToken, call } from '../helpers/app.ts';
import { dockerMissing, startDocker, type TestDocker } from '../helpers/docker.ts';
import { freePort } from '../helpers/free-port.ts';
import { ask } from '../helpers/router.ts';
import { buildServiceImage } from '../helpers/service-image.ts';
import { until } from '../helpers/wait.ts';

const user = '10001:10001';
const stopWithinS = 60;
const settings = ['SLUICE_DATA_DIR=/data/sluice', 'SLUICE_REGIONS=local=standin:', 'SLUICE_SAMPLE=off'];

describe('the image', { skip: dockerMissing }, () => {
  /** As a kubelet makes an emptyDir: of root, and open to all. */
  const emptyDir = mkdtempSync(join(tmpdir(), 'sluice-empty-dir-'));
  chmodSync(emptyDir, 0o2777);
  let docker: TestDocker;
  let built: ImageInspectInfo;
  let container: Container;
  let url: string;
  let routerPort: number;

  before(async () => {
    docker = await startDocker();
    const image = await buildServiceImage(docker);
    built = await docker.client.getImage(image).inspect();
    const port = await freePort();
    routerPort = await freePort();
    url = `http://127.0.0.1:${port}`;
    container = await docker.client.createContainer({
      Image: image,
      Env: [...settings, `SLUICE_ADMIN_TOKEN=${adminToken}`],
      HostConfig: {
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        Tmpfs: { '/tmp': '' },
        Binds: [`${emptyDir}:/data`],
        PortBindings: {
          '8080/tcp': [{ HostIp: '127.0.0.1', HostPort: String(port) }],
          '8000/tcp': [{ HostIp: '127.0.0.1', HostPort: String(routerPort) }],
        },
      },
    });
    await container.start();
    const answers = () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until('an answer', answers, 60_000).catch(async (error) => {
      throw new Error(String(await container.logs({ stdout: true, stderr: true })), { cause: error });
    });
  });
  after(async () => {
    await docker?.stop();
    rmSync(emptyDir, { recursive: true, force: true });
  });

  test('runs as a user without rights, and says which ports and which folder it needs', async () => {
    const { User, Volumes, ExposedPorts } = built.Config as typeof built.Config & { User: string };
    assert.equal(User, user);
    assert.deepEqual(Object.keys(Volumes), ['/data']);
    assert.deepEqual(Object.keys(ExposedPorts!).sort(), ['8000/tcp', '8080/tcp', '8443/tcp']);
    const { Processes, Titles } = await container.top({ ps_args: '-eo uid,pid,args' });
    assert.equal(Titles[0], 'UID');
    assert.ok(Processes.length >= 3, 'a supervisor, a control process, a router worker');
    for (const [uid] of Processes) assert.equal(uid, '10001');
  });

  test('with a read-only file system it is live, ready and healthy, takes an API call and carries a request', async () => {
    for (const path of ['/livez', '/readyz']) assert.equal(await (await fetch(url + path)).text(), 'ok\n');
    const check = await container.exec({ Cmd: built.Config.Healthcheck!.Test!.slice(1), AttachStdout: true });
    (await check.start({})).resume();
    await until('the check to end', async () => (await check.inspect()).Running === false);
    assert.equal((await check.inspect()).ExitCode, 0);
    assert.equal((await fetch(`${url}/console`)).status, 200);
    const project = await call(url, 'POST', '/v1/projects', { body: { name: 'Shop' } });
    assert.equal(project.status, 201);
    const body = { environment: 'production', image: 'registry.example/shop:1' };
    assert.equal((await call(url, 'POST', `/v1/projects/${project.body.id}/deployments`, { body })).status, 201);
    const serves = async () => {
      const answer = await ask(routerPort, { host: 'shop-production.localhost' });
      return answer.status === 200 && answer.body;
    };
    const page = await until('the revision to serve', serves, 60_000).catch(async (error) => {
      throw new Error(String(await container.logs({ stdout: true, stderr: true })), { cause: error });
    });
    assert.equal(JSON.parse(page).revision, 'r1');
  });

  test('on SIGTERM it ends in time and in order', async () => {
    await container.stop({ t: stopWithinS });
    const { State } = await container.inspect();
    assert.equal(State.ExitCode, 0, 'not 137: nobody had to kill it');
  });
});
