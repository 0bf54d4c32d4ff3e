// npm run soak -- faults [words]: every fault that a service suffers by itself, one after another under load, on both data
// planes and both databases. For each it prints the failed visits, the lost acknowledgements and the time until all works
// again. See docs/soak.md.
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { adminToken, call } from '../helpers/app.ts';
import { childrenOf, commandOf, isAlive, parentOf, processesOf, suspend } from '../helpers/children.ts';
import { freePort, reserveInstancePorts } from '../helpers/free-port.ts';
import { startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { ask } from '../helpers/router.ts';
import { main, type Service, startService } from '../helpers/service.ts';
import { until } from '../helpers/wait.ts';

const visitors = 4;
/** A token has 600 requests a minute. */
const writeEveryMs = 250;
const calmMs = 1500;
const recoversWithinMs = 120_000;
const host = 'shop-production.localhost';

type Plane = 'builtin' | 'haproxy';
type DatabaseKind = 'sqlite' | 'postgres';

/** One service under load, on a disk of its own that can be filled. */
interface Bed {
  plane: Plane;
  database: DatabaseKind;
  disk: string;
  dataDir: string;
  /** The program that runs the service; it can be replaced. */
  program: string;
  postgres: TestPostgres | null;
  service: Service;
  startAgain(): void;
  url: string;
  routerPort: number;
}

interface Fault {
  name: string;
  /** null: everywhere. */
  only?: Plane | DatabaseKind;
  /** Visits in the process that is killed fail with it; everything else must not. */
  mayFailVisits?: Plane | 'both';
  /** Resolves when the fault is over; that all works again is waited for after it. */
  strike(bed: Bed): Promise<void>;
}

const control = ({ service }: Bed): number => childrenOf(service.child.pid!, 'control.js')[0]!;
const workersOf = (bed: Bed): number[] =>
  bed.plane === 'builtin'
    ? childrenOf(bed.service.child.pid!, 'router-worker.js')
    : processesOf(bed.dataDir, 'haproxy').filter((pid) => commandOf(parentOf(pid)).includes('haproxy'));

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const gone = (pid: number) => until('it to end', () => !isAlive(pid), recoversWithinMs);
const kill = (pid: number | undefined) => pid !== undefined && process.kill(pid, 'SIGKILL');

async function fill(path: string): Promise<void> {
  const file = openSync(path, 'w');
  try {
    for (;;) writeSync(file, Buffer.alloc(4096));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(file);
  }
}

const faults: Fault[] = [
  { name: 'the control process is killed', strike: async (bed) => void kill(control(bed)) },
  {
    name: 'the control process is killed, five times within ten seconds',
    async strike(bed) {
      for (let n = 0; n < 5; n++) {
        kill(await until('one', () => control(bed), recoversWithinMs));
        await wait(2000);
      }
    },
  },
  {
    name: 'the control process hangs',
    async strike(bed) {
      const pid = control(bed);
      await suspend(pid);
      await gone(pid);
    },
  },
  {
    name: 'a router worker is killed',
    mayFailVisits: 'both',
    strike: async (bed) => void kill(workersOf(bed)[0]),
  },
  {
    name: 'a router worker hangs',
    only: 'builtin',
    mayFailVisits: 'builtin',
    async strike(bed) {
      const pid = workersOf(bed)[0]!;
      await suspend(pid);
      await gone(pid);
    },
  },
  {
    name: 'the supervisor is killed, and started again after two seconds',
    async strike(bed) {
      const pid = control(bed);
      bed.service.child.kill('SIGKILL');
      await gone(pid);
      await wait(2000);
      bed.startAgain();
    },
  },
  {
    name: 'all processes but HAProxy are killed, and started again',
    mayFailVisits: 'builtin',
    async strike(bed) {
      bed.service.killAll();
      await bed.service.exited;
      bed.startAgain();
    },
  },
  { name: 'a reload', strike: async (bed) => void bed.service.child.kill('SIGHUP') },
  {
    name: 'the control process is killed while its program is being written',
    async strike(bed) {
      const next = `${bed.program}.new`;
      copyFileSync(bed.program, next);
      const file = openSync(next, 'r+'); // ETXTBSY for as long as it is open
      renameSync(next, bed.program);
      kill(control(bed));
      await wait(3000);
      closeSync(file);
    },
  },
  {
    name: 'the control process runs out of file descriptors',
    async strike(bed) {
      const pid = String(control(bed));
      const [, most] = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))!;
      execFileSync('prlimit', ['--pid', pid, '--nofile=24:']);
      await wait(15_000);
      execFileSync('prlimit', ['--pid', pid, `--nofile=${most}:`]);
    },
  },
  {
    name: 'the disk is full for ten seconds',
    async strike(bed) {
      await fill(join(bed.disk, 'ballast'));
      await wait(10_000);
      rmSync(join(bed.disk, 'ballast'));
    },
  },
  {
    name: 'the control process is killed while the disk is full',
    async strike(bed) {
      await fill(join(bed.disk, 'ballast'));
      kill(control(bed));
      await wait(5000);
      rmSync(join(bed.disk, 'ballast'));
    },
  },
  {
    name: 'the instance is killed',
    mayFailVisits: 'both',
    strike: async (bed) => {
      for (const pid of processesOf(bed.dataDir, 'standin')) kill(pid);
    },
  },
  {
    name: 'another program locks the database for eight seconds',
    only: 'sqlite',
    async strike(bed) {
      const other = new DatabaseSync(join(bed.dataDir, 'sluice.db'));
      other.exec('begin immediate');
      await wait(8000);
      other.exec('rollback');
      other.close();
    },
  },
  {
    name: 'the database is away for ten seconds',
    only: 'postgres',
    async strike({ postgres }) {
      await postgres!.pause();
      await wait(10_000);
      await postgres!.resume();
    },
  },
  {
    name: 'the database loses its power',
    only: 'postgres',
    async strike({ postgres }) {
      await postgres!.crash();
      await wait(1000);
      await postgres!.resume();
    },
  },
  {
    name: 'the control process starts while the database is away',
    only: 'postgres',
    async strike(bed) {
      await bed.postgres!.pause();
      kill(control(bed));
      await wait(5000);
      await bed.postgres!.resume();
    },
  },
];

/** What visitors and clients of the API saw. */
class Load {
  visits = 0;
  readonly failed: string[] = [];
  readonly acknowledged: string[] = [];
  #writes = 0;
  #isOver = false;
  readonly #running: Promise<void>[];

  constructor(bed: Bed) {
    this.#running = [...Array.from({ length: visitors }, () => this.#visit(bed)), this.#write(bed)];
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
  }

  async #visit({ routerPort }: Bed): Promise<void> {
    while (!this.#isOver) {
      this.visits++;
      const headers = { host, ...(this.visits % 2 === 0 && { connection: 'close' }) };
      await ask(routerPort, { headers }).then(
        ({ status }) => void (status === 200 || this.failed.push(String(status))),
        (error) => void this.failed.push(String((error as NodeJS.ErrnoException).code ?? error)),
      );
      await wait(5);
    }
  }

  async #write(bed: Bed): Promise<void> {
    while (!this.#isOver) {
      const body = { name: `Acknowledged ${++this.#writes}`, slug: `a-${process.pid}-${Date.now()}` };
      const { status, body: made } = await tryCall(bed, 'POST', '/projects', body);
      if (status === 201) this.acknowledged.push(made.id);
      await wait(writeEveryMs);
    }
  }
}

const tryCall = ({ url }: Bed, method: string, path: string, body?: object) =>
  call(url, method, `/v1${path}`, { token: adminToken, ...(body && { body }) }).catch(() => ({
    status: 0,
    body: null as never,
  }));

/** Reads, writes, routes, and a visit. */
async function works(bed: Bed): Promise<boolean> {
  const isReady = await fetch(`${bed.url}/readyz/writes`).then(
    ({ ok }) => ok,
    () => false,
  );
  if (!isReady || (await tryCall(bed, 'GET', '/projects')).status !== 200) return false;
  return ask(bed.routerPort, { headers: { host } }).then(
    ({ status }) => status === 200,
    () => false,
  );
}

interface Suffered {
  visits: number;
  failed: number;
  lost: number;
  recoveryMs: number;
  /** What is not as it must be. */
  violations: string[];
}

async function suffer(bed: Bed, fault: Fault): Promise<Suffered> {
  const load = new Load(bed);
  await wait(calmMs);
  const violations = load.failed.map((why) => `a visit before the fault: ${why}`);
  await fault.strike(bed);
  const over = performance.now();
  await until('all to work again', () => works(bed), recoversWithinMs);
  const recoveryMs = Math.round(performance.now() - over);
  await wait(calmMs / 3); // what a killed process has cut off is seen by its visitors
  const failedUntilThen = load.failed.length;
  await wait(calmMs);
  await load.stop();
  const after = load.failed.slice(failedUntilThen);
  violations.push(...after.map((why) => `a visit after all worked again: ${why}`));
  const mayFail = fault.mayFailVisits === 'both' || fault.mayFailVisits === bed.plane;
  if (!mayFail && load.failed.length > 0) violations.push(`visits failed: ${[...new Set(load.failed)].join(', ')}`);
  const there = await listProjects(bed);
  const lost = load.acknowledged.filter((id) => !there.has(id)).length;
  if (lost > 0) violations.push('acknowledged projects are not there');
  return { visits: load.visits, failed: load.failed.length, lost, recoveryMs, violations };
}

async function listProjects(bed: Bed): Promise<Set<string>> {
  const ids = new Set<string>();
  for (let next: string | null = ''; next !== null; ) {
    const page = await tryCall(bed, 'GET', `/projects?limit=100${next && `&cursor=${encodeURIComponent(next)}`}`);
    if (page.status !== 200) throw new Error(`the list of projects is answered with ${page.status}`);
    for (const { id } of page.body.data) ids.add(id);
    ({ next } = page.body.page);
  }
  return ids;
}

async function makeBed(plane: Plane, database: DatabaseKind): Promise<{ bed: Bed; remove(): Promise<void> }> {
  const disk = mkdtempSync(join(tmpdir(), 'sluice-soak-faults-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=96m,mode=700', 'tmpfs', disk]);
  const programs = mkdtempSync(join(tmpdir(), 'sluice-soak-program-'));
  const program = join(programs, 'node');
  copyFileSync(process.execPath, program);
  const dataDir = join(disk, 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  const postgres = database === 'postgres' ? await startPostgres() : null;
  const instancePorts = await reserveInstancePorts();
  const [port, routerPort, tlsPort] = [await freePort(), await freePort(), await freePort()];
  const env = {
    SLUICE_DATA_DIR: dataDir,
    SLUICE_PORT: String(port),
    SLUICE_ROUTER_PORT: String(routerPort),
    SLUICE_ROUTER_TLS_PORT: String(tlsPort),
    SLUICE_ROUTER_WORKERS: '2',
    SLUICE_DATA_PLANE: plane,
    SLUICE_REGIONS: 'local=standin:',
    SLUICE_INSTANCE_PORTS: instancePorts.range,
    SLUICE_PROJECTS_PER_ACCOUNT: '0',
    SLUICE_ADMIN_TOKEN: adminToken,
    SLUICE_SAMPLE: 'off',
    SLUICE_LOG_LEVEL: 'warn',
    SLUICE_WATCHDOG_S: '5',
    ...(postgres && { SLUICE_DATABASE_URL: postgres.url }),
  };
  const started: Service[] = [];
  const start = () => {
    started.push(startService(env, main, program));
    return started.at(-1)!;
  };
  const bed: Bed = {
    ...{ plane, database, disk, dataDir, program, postgres, routerPort },
    url: `http://127.0.0.1:${port}`,
    service: start(),
    startAgain() {
      bed.service = start();
    },
  };
  const remove = async () => {
    bed.service.child.kill('SIGTERM');
    await Promise.race([bed.service.exited, wait(20_000)]);
    for (const service of started) service.killAll();
    for (const pid of processesOf(dataDir, '')) if (pid !== process.pid) kill(pid);
    await postgres?.stop();
    instancePorts.release();
    execFileSync('umount', ['-l', disk]);
    for (const folder of [disk, programs]) rmSync(folder, { recursive: true, force: true });
  };
  try {
    await bed.service.url;
    const { body: project } = await call(bed.url, 'POST', '/v1/projects', {
      token: adminToken,
      body: { name: 'Shop', slug: 'shop' },
    });
    await call(bed.url, 'POST', `/v1/projects/${project.id}/deployments`, {
      token: adminToken,
      body: { environment: 'production', image: 'registry.example/shop:1' },
    });
    await until('the first visit', () => works(bed), recoversWithinMs);
    return { bed, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Resolves with the exit code. */
export async function faultsRun(words: string[]): Promise<number> {
  const isWanted = (name: string) => words.length === 0 || words.some((word) => name.includes(word));
  let broken = 0;
  console.log('fault | plane | database | visits | failed | lost | recovery ms');
  for (const plane of ['builtin', 'haproxy'] as const) {
    for (const database of ['sqlite', 'postgres'] as const) {
      const fits = ({ name, only }: Fault) =>
        isWanted(`${name} ${plane} ${database}`) && (only === undefined || only === plane || only === database);
      const wanted = faults.filter(fits);
      if (wanted.length === 0) continue;
      const { bed, remove } = await makeBed(plane, database);
      try {
        for (const fault of wanted) {
          const { visits, failed, lost, recoveryMs, violations } = await suffer(bed, fault);
          console.log([fault.name, plane, database, visits, failed, lost, recoveryMs].join(' | '));
          for (const line of [...new Set(violations)].slice(0, 5)) console.log(`  VIOLATION: ${line}`);
          broken += violations.length === 0 ? 0 : 1;
        }
      } catch (error) {
        console.log(bed.service.output().split('\n').slice(-40).join('\n'));
        throw error;
      } finally {
        await remove();
      }
    }
  }
  console.log(broken === 0 ? 'no fault became a problem of visitors or clients' : `${broken} faults did`);
  return broken === 0 ? 0 : 1;
}
