// What the service suffers by itself is no visitor's problem: processes that hang or cannot be started, a supervisor that is
// killed, a full disk, a port that is taken.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { isolatedEnv } from '../helpers/app.ts';
import { isAlive, suspend } from '../helpers/children.ts';
import { freePort } from '../helpers/free-port.ts';
import { type RoutedService, startRoutedService } from '../helpers/routed-service.ts';
import { ask, named } from '../helpers/router.ts';
import { type Load, startLoad } from '../helpers/router-control.ts';
import { startService } from '../helpers/service.ts';
import { until } from '../helpers/wait.ts';

const scratch = mkdtempSync(join(tmpdir(), 'sluice-faults-'));
after(() => rmSync(scratch, { recursive: true, force: true }));
const instance = await named('shop');

let visits = 0;
const visitor = (routed: RoutedService) => () => {
  visits++;
  return ask(routed.ports.http, { headers: visits % 2 === 0 ? { connection: 'close' } : {} });
};

async function more(load: Load, count = 100): Promise<void> {
  const before = visits;
  await until(`${count} more visits`, () => visits > before + count, 60_000);
  assert.deepEqual(load.failed, []);
}

test('a control process that hangs is replaced, and so is a worker; no other visit fails', async () => {
  const routed = await startRoutedService([instance], { more: { SLUICE_WATCHDOG_S: '3' } });
  const [control] = routed.control();
  const load = startLoad(4, visitor(routed));
  await suspend(control!);
  await until('it is replaced', () => !isAlive(control!) && routed.control().length === 1, 30_000);
  assert.match(routed.service.output(), /the control process hangs: it is killed and started again/);
  await more(load);
  await load.stop();
  const [worker] = routed.workers();
  await suspend(worker!);
  await until('it is replaced', () => !isAlive(worker!) && routed.workers().length === 2, 30_000);
  assert.equal((await ask(routed.ports.http)).status, 200);
  assert.deepEqual(load.failed, []);
});

test('a supervisor that stood still itself does not take its children for silent', async () => {
  const routed = await startRoutedService([instance], { more: { SLUICE_WATCHDOG_S: '1' } });
  const processes = [...routed.control(), ...routed.workers()];
  const supervisor = routed.service.child.pid!;
  await suspend(supervisor);
  const stopped = performance.now();
  await until('longer than the watchdog waits', () => performance.now() - stopped > 3000);
  process.kill(supervisor, 'SIGCONT');
  const resumed = performance.now();
  await until('it has checked again', () => performance.now() - resumed > 3000);
  assert.ok(processes.every(isAlive));
  assert.doesNotMatch(routed.service.output(), /hangs/);
});

test('a program that is being replaced can not be started for a while: it is tried again, and visits go on', async () => {
  const program = join(scratch, 'node');
  copyFileSync(process.execPath, program);
  const routed = await startRoutedService([instance], { program });
  const load = startLoad(4, visitor(routed));
  const beingWritten = `${program}.new`;
  copyFileSync(process.execPath, beingWritten);
  const file = openSync(beingWritten, 'r+'); // ETXTBSY for as long as it is open
  renameSync(beingWritten, program);
  const attempts = () => routed.service.output().split('ETXTBSY').length - 1;
  try {
    process.kill(routed.control()[0]!, 'SIGKILL');
    await until('it fails to start', () => attempts() >= 2, 30_000);
    routed.service.child.kill('SIGHUP');
    await until('the reload fails', () => /Not reloaded/.test(routed.service.output()), 30_000);
    rmSync(program); // ENOENT
    await until('it fails for another reason', () => /ENOENT/.test(routed.service.output()), 30_000);
    await more(load);
  } finally {
    closeSync(file);
    copyFileSync(process.execPath, program);
  }
  await until('it is back', () => routed.control().length === 1, 30_000);
  routed.service.child.kill('SIGHUP');
  await until('a later reload succeeds', () => /reloaded: the service runs/.test(routed.service.output()), 60_000);
  await more(load);
  await load.stop();
  assert.deepEqual(load.failed, []);
});

/** Of each listening socket of a worker, what tells it from others at the same address. */
const listensOn = (worker: number) => [3, 4].map((fd) => readlinkSync(`/proc/${worker}/fd/${fd}`));

test('kill -9 of the supervisor: its workers serve on, and the next one takes over without a refused visit', async () => {
  const routed = await startRoutedService([instance]);
  const load = startLoad(4, visitor(routed));
  for (let round = 1; round <= 2; round++) {
    const orphans = routed.workers();
    const control = routed.control();
    const sockets = listensOn(orphans[0]!);
    routed.service.child.kill('SIGKILL');
    await until('the control process ends', () => !control.some(isAlive), 30_000);
    await more(load);
    assert.ok(orphans.every(isAlive));
    routed.startAgain();
    await routed.service.url;
    await until('the orphans end', () => !orphans.some(isAlive), 30_000);
    assert.match(routed.service.output(), /took over from the processes of a supervisor that was killed/);
    // The sockets themselves: a connection that waits at one that only shares the port is reset with the orphan.
    for (const worker of routed.workers()) assert.deepEqual(listensOn(worker), sockets);
    await more(load);
  }
  await load.stop();
  assert.deepEqual(load.failed, []);
});

test('kill -9 of the supervisor and a new one in the same moment', async () => {
  const routed = await startRoutedService([instance]);
  const load = startLoad(4, visitor(routed));
  const orphans = [...routed.workers(), ...routed.control()];
  routed.service.child.kill('SIGKILL');
  routed.startAgain();
  await routed.service.url;
  await until('the orphans end', () => !orphans.some(isAlive), 30_000);
  await more(load);
  await load.stop();
  assert.deepEqual(load.failed, []);
});

test('a start on a full disk: visitors are served by the last table, and all else follows once there is room', async () => {
  const disk = join(scratch, 'disk');
  mkdirSync(disk);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m,mode=700', 'tmpfs', disk]);
  try {
    const routed = await startRoutedService([instance], { dataDir: mkdtempSync(join(disk, 'data-')) });
    await until('a visit', async () => (await ask(routed.ports.http)).status === 200);
    routed.service.child.kill('SIGTERM');
    await routed.service.exited;
    fill(join(disk, 'ballast'));
    routed.startAgain();
    await until('a visit', () => ask(routed.ports.http).then(isServed, () => false), 30_000);
    const load = startLoad(4, visitor(routed));
    const hasFailed = () => /visitors are served/.test(routed.service.output());
    await until('the control process has failed', hasFailed, 30_000).catch((error) => {
      throw new Error(routed.service.output(), { cause: error });
    });
    await more(load);
    rmSync(join(disk, 'ballast'));
    await routed.service.url;
    await more(load);
    await load.stop();
    assert.deepEqual(load.failed, []);
    routed.service.child.kill('SIGTERM');
    assert.deepEqual(await routed.service.exited, [0, null]);
  } finally {
    execFileSync('umount', ['-l', disk]);
  }
});

const isServed = ({ status }: { status: number }) => status === 200;

/** Until nothing more fits on the disk. */
function fill(path: string): void {
  const file = openSync(path, 'w');
  try {
    for (;;) writeSync(file, Buffer.alloc(4096));
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
  } finally {
    closeSync(file);
  }
}

for (const plane of ['builtin', 'haproxy']) {
  test(`a port that another program has is one line, on the ${plane} plane`, async () => {
    const { env, clean } = await isolatedEnv();
    const taken = createServer().listen(0, '127.0.0.1');
    await until('it listens', () => taken.listening);
    const { port } = taken.address() as { port: number };
    const settings = { ...env, SLUICE_DATA_PLANE: plane, SLUICE_ROUTER_PORT: String(port) };
    const service = startService({ ...settings, SLUICE_ROUTER_TLS_PORT: String(await freePort()) });
    assert.deepEqual(await service.exited, [78, null]);
    assert.equal(
      service.output(),
      `sluice: SLUICE_ROUTER_PORT: port ${port} is in use by another program. Stop that, or choose another port.\n`,
    );
    taken.close();
    await clean();
  });
}
