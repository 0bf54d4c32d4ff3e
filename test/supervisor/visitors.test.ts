// What visitors notice of a reload and of the end of a worker: nothing, or only those whose requests were inside it.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { isAlive } from '../helpers/children.ts';
import {
  type HeldRequest,
  holdDownload,
  holdStreams,
  holdTunnel,
  holdUpload,
  startHoldingInstance,
} from '../helpers/held-requests.ts';
import { copyInstall } from '../helpers/installed-copy.ts';
import { startRoutedService } from '../helpers/routed-service.ts';
import { ask, route, share } from '../helpers/router.ts';
import { startLoad, storedRequests } from '../helpers/router-control.ts';
import { until } from '../helpers/wait.ts';
import { openPlane, openWorkers } from '../helpers/workers.ts';
import { workerOf } from '../soak/worker-of.ts';

/** `npm run soak -- planes` takes more of each. */
const reloads = Number(process.env.SLUICE_TEST_RELOADS ?? 1);
const requests = Number(process.env.SLUICE_TEST_REQUESTS ?? 1500);
const heldOfAKind = Number(process.env.SLUICE_TEST_HELD ?? 4);

const install = copyInstall();
after(() => install.remove());
const instance = await startHoldingInstance();
const routed = await startRoutedService([instance], { entry: install.main });
/** All requests that were sent, by anything here. */
let sent = 0;

const visit = (headers: Record<string, string> = {}) => {
  sent++;
  return ask(routed.ports.http, { headers });
};
const visitAnew = () => visit({ connection: 'close' });

async function holdMany(): Promise<HeldRequest[]> {
  const { http, tls } = routed.ports;
  const held: HeldRequest[] = [];
  for (let i = 0; i < heldOfAKind; i++) {
    held.push(await holdUpload(http, instance), await holdDownload(http, instance), await holdTunnel(http));
    held.push(await holdStreams(tls, instance));
    sent += 5;
  }
  return held;
}

/** The worker that it is in. */
function holderOf({ port, localPort }: HeldRequest): number {
  const worker = workerOf(port, localPort, routed.workers());
  assert.ok(worker, 'a request that is held is in a worker');
  return worker;
}

const unknownHost = async () =>
  (await ask(routed.ports.http, { host: 'nobody.localhost', headers: { connection: 'close' } })).body;

test('SIGHUP with new code on disk, with uploads, downloads, WebSockets and HTTP/2 streams open: none fails', {
  timeout: 1_800_000,
}, async () => {
  const { service, workers } = routed;
  const load = startLoad(6, () => (sent % 3 === 0 ? visitAnew() : visit()));
  const begun = sent;
  let text = 'nothing is deployed under this host name';
  try {
    for (let reload = 1; reload <= reloads; reload++) {
      const old = workers();
      assert.equal(old.length, 2);
      const held = await holdMany();
      const holders = held.map(holderOf);
      install.upgrade(text, `version ${reload}`);
      text = `version ${reload}`;
      service.child.kill('SIGHUP');
      await until('the reload', () => service.output().split('reloaded: ').length > reload, 120_000);
      await until('new connections to meet the new code', async () => (await unknownHost()).startsWith(text));
      assert.ok(holders.every(isAlive), 'the old workers wait for their requests');
      await until('requests', () => sent - begun >= (requests * reload) / reloads, 900_000);
      assert.deepEqual(
        held.filter((one) => one.isCut()),
        [],
      );
      for (const one of held) await one.finish();
      await until('the old workers to end', () => !workers().some((pid) => old.includes(pid)), 60_000);
    }
  } finally {
    await load.stop();
  }
  assert.deepEqual(load.failed, []);
  await until('all are stored', async () => (await storedRequests(routed.db)) >= sent);
  assert.equal(await storedRequests(routed.db), sent);
  console.log(`${sent} requests over ${reloads} reloads: none failed, none was cut, each counted once`);
});

test('kill -9 of one of two workers: requests inside it fail, and no others', async () => {
  const { service, workers } = routed;
  const placed = (await holdMany()).map((one) => ({ one, worker: holderOf(one) }));
  const killed = placed[0]!.worker;
  let [visits, isGone] = [0, false];
  const notInside: string[] = [];
  const load = startLoad(6, async () => {
    visits++;
    const isLater = isGone;
    const answer = await visitAnew().catch((error) => ({ status: 0, body: String(error) }));
    if (isLater && answer.status !== 200) notInside.push(answer.body);
    return answer;
  });
  await until('requests to flow', () => visits > 100);
  process.kill(killed, 'SIGKILL');
  await until('its end', () => !isAlive(killed));
  isGone = true;
  const before = visits;
  await until('it is replaced', () => workers().length === 2 && !workers().includes(killed));
  await until('more requests', () => visits > before + 300);
  await load.stop();
  assert.deepEqual(notInside, []);
  for (const { one, worker } of placed) {
    if (worker === killed) await until(`${one.kind} to be cut`, () => one.isCut());
    else await one.finish();
  }
  assert.match(service.output(), /router worker w\d was ended by SIGKILL/);
});

test('what does not end by itself is cut at the limit, and not before', async () => {
  const workers = openWorkers();
  const agent = await openPlane(workers);
  await agent.load(route([share(1, 100, instance)]));
  await agent.plane.listen();
  const worker = workers.start({ drainS: 2 });
  await worker.ready;
  const tunnel = await holdTunnel(workers.ports.http);
  const askedAt = performance.now();
  worker.child.kill('SIGTERM');
  assert.deepEqual(await worker.exited, [0, null]);
  assert.ok(performance.now() - askedAt >= 2000, `${performance.now() - askedAt} ms`);
  await until('it is cut', () => tunnel.isCut());
});
