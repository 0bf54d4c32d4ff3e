// npm run bench -- webhooks [drain] [latency] [hang]: deliveries a second, and from commit to arrival, beside two queues.
//
// Ten receivers on loopback in one process, the sender in another, and, on PostgreSQL, who commits in a third; the two
// queues make the same signed POSTs as jobs, with the same number under way, their batching and their NOTIFY turned on.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { openDatabase } from '../src/db/database.ts';
import { createDatabase, startPostgres } from '../test/helpers/postgres.ts';
import { api, appEnv, startServer, tempDir } from './lib/processes.ts';
import { median } from './lib/wrk.ts';

type Kind = 'sluice' | 'pgBoss' | 'graphile';
type Stamps = [n: number, at: number][];

const drained = 10_000;
const secondsOfLatency = 6;

const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => void child.kill('SIGKILL')));

class Process {
  readonly child: ChildProcess;

  constructor(entry: string, env: Record<string, string> = {}) {
    this.child = fork(join(import.meta.dirname, 'webhooks', entry), [], {
      env: { ...process.env, ...env },
      execArgv: (process.env.BENCH_EXEC_ARGV ?? '').split(' ').filter((arg) => arg !== ''),
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    running.add(this.child);
    this.child.once('exit', () => running.delete(this.child));
  }

  /** It ends by itself when nobody can ask it any more. */
  async close(): Promise<void> {
    if (!this.child.connected) return;
    const exited = once(this.child, 'exit');
    this.child.disconnect();
    await exited;
  }

  async ready<T>(): Promise<T> {
    const [message] = await once(this.child, 'message');
    return message as T;
  }

  ask<T>(message: object): Promise<T> {
    const answer = this.ready<T>();
    this.child.send(message);
    return answer;
  }
}

class Receivers extends Process {
  urls: string[] = [];

  static async open(): Promise<Receivers> {
    const receivers = new Receivers('receivers.ts');
    receivers.urls = (await receivers.ready<{ urls: string[] }>()).urls;
    return receivers;
  }

  async until(count: number, withinMs = 60_000): Promise<void> {
    const giveUpAt = Date.now() + withinMs;
    for (;;) {
      const { count: arrived } = await this.ask<{ count: number }>({ ask: 'count' });
      if (arrived >= count) return;
      if (Date.now() > giveUpAt) throw new Error(`${arrived} of ${count} arrived`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  take = async (): Promise<Stamps> => (await this.ask<{ arrived: Stamps }>({ ask: 'take' })).arrived;
  hang = (hang: boolean, others = true) => this.ask({ ask: 'hang', hang, others });
}

/** Ready to produce and to work; `begin` lets it send. */
interface Arena {
  producer: Process;
  begin(): Promise<void>;
  close(): Promise<void>;
}

async function prepareSluice(env: Record<string, string>, urls: string[], paused: boolean) {
  const app = await startServer('app-server.ts', env);
  const hooks: string[] = [];
  const projects: string[] = [];
  for (const url of urls) {
    const project = await api<{ id: string }>(app, 'POST', '/projects', { name: 'Bench' });
    projects.push(project.id);
    const body = { url, events: ['*'], project_id: project.id };
    const hook = await api<{ id: string }>(app, 'POST', '/webhooks', body);
    if (paused) await api(app, 'PATCH', `/webhooks/${hook.id}`, { state: 'paused' });
    hooks.push(hook.id);
  }
  await app.stop();
  const opened = { url: env.SLUICE_DATABASE_URL ?? null, dataDir: env.SLUICE_DATA_DIR!, onConnectionLost: () => {} };
  const { db, close } = await openDatabase(opened);
  const rows = await db.selectFrom('project').select(['id', 'account_id']).where('id', 'in', projects).execute();
  await close();
  return { hooks, rows };
}

async function openArena(kind: Kind, postgres: string | null, receivers: Receivers, paused: boolean): Promise<Arena> {
  const env: Record<string, string> = {
    ...appEnv(tempDir()),
    SLUICE_LOG_LEVEL: 'warn',
    BENCH_KIND: kind,
    BENCH_URLS: JSON.stringify(receivers.urls),
  };
  const database = postgres ? await createDatabase(postgres) : null;
  if (database) Object.assign(env, { BENCH_POSTGRES: database.url, SLUICE_DATABASE_URL: database.url });
  let hooks: string[] = [];
  if (kind === 'sluice') {
    const prepared = await prepareSluice(env, receivers.urls, paused);
    hooks = prepared.hooks;
    env.BENCH_PROJECTS = JSON.stringify(prepared.rows);
  }
  const worker = new Process('contender.ts', { ...env, BENCH_ROLE: 'work' });
  await worker.ready();
  const producer = database ? new Process('contender.ts', { ...env, BENCH_ROLE: 'produce' }) : worker;
  if (producer !== worker) await producer.ready();
  if (!paused) await worker.ask({ ask: 'work' });
  return {
    producer,
    async begin() {
      await worker.ask({ ask: 'work' });
      if (kind !== 'sluice') return;
      const { db, close } = await openDatabase({
        url: env.SLUICE_DATABASE_URL ?? null,
        dataDir: env.SLUICE_DATA_DIR!,
        onConnectionLost: () => {},
      });
      await db.updateTable('webhook').set({ state: 'enabled' }).where('id', 'in', hooks).execute();
      await close();
    },
    async close() {
      await Promise.all([worker.close(), producer.close()]);
      await database?.drop();
    },
  };
}

const percentile = (values: number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]!;

const contenders = (postgres: string): [string, Kind, string | null][] => [
  ['Sluice on PostgreSQL', 'sluice', postgres],
  ['pg-boss', 'pgBoss', postgres],
  ['graphile-worker', 'graphile', postgres],
  ['Sluice on SQLite', 'sluice', null],
];

/** A backlog, sent as fast as it goes: deliveries a second between the first arrival and the last. */
async function drain(kind: Kind, postgres: string | null, receivers: Receivers): Promise<number> {
  const arena = await openArena(kind, postgres, receivers, true);
  try {
    await arena.producer.ask({ ask: 'produce', from: 0, count: drained, perSecond: null });
    await arena.begin();
    await receivers.until(drained);
    const at = (await receivers.take()).map(([, time]) => time);
    return (drained - 1) / ((Math.max(...at) - Math.min(...at)) / 1000);
  } finally {
    await arena.close();
  }
}

/** From commit to arrival; `others`: of all but what is for the first receiver. */
async function latency(
  arena: Arena,
  receivers: Receivers,
  perSecond: number,
  from: number,
  others: boolean,
  seconds = secondsOfLatency,
) {
  const count = perSecond * seconds;
  const { committed } = await arena.producer.ask<{ committed: Stamps }>({ ask: 'produce', from, count, perSecond });
  const expected = committed.filter(([n]) => !others || n % receivers.urls.length !== 0);
  await receivers.until(expected.length).catch(() => {}); // what has not come by then has waited longer than all others
  const arrivals = new Map(await receivers.take());
  const waits = expected.map(([n, at]) => (arrivals.has(n) ? Math.max(0, arrivals.get(n)! - at) : 60_000));
  return { p50: percentile(waits, 0.5), p95: percentile(waits, 0.95) };
}

const ms = (value: number) => (value >= 60_000 ? 'over a minute' : `${value.toFixed(1)} ms`);
const verdict = (met: boolean) => (met ? 'met   ' : 'MISSED');

async function benchDrain(postgres: string, receivers: Receivers): Promise<void> {
  const rates: Record<string, number> = {};
  for (const [name, kind, url] of contenders(postgres)) {
    rates[name] = await drain(kind, url, receivers);
    console.log(`        ${name.padEnd(24)} ${Math.round(rates[name]).toLocaleString('en').padStart(8)} deliveries/s`);
  }
  const own = rates['Sluice on PostgreSQL']!;
  console.log(`${verdict(own >= 1000)}  1,000 a second on PostgreSQL, one process`);
  for (const other of ['pg-boss', 'graphile-worker']) {
    console.log(`${verdict(own > rates[other]!)}  ${(own / rates[other]!).toFixed(2)} × ${other}`);
  }
}

async function benchLatency(postgres: string, receivers: Receivers): Promise<void> {
  for (const perSecond of [200, 1000]) {
    for (const [name, kind, url] of contenders(postgres)) {
      const arena = await openArena(kind, url, receivers, false);
      await latency(arena, receivers, 200, 0, false, 3); // warm
      const { p50, p95 } = await latency(arena, receivers, perSecond, 1_000_000, false);
      const target = name === 'Sluice on PostgreSQL' && perSecond === 200;
      const mark = target ? verdict(p95 < 100) : '      ';
      console.log(`${mark}  ${name.padEnd(24)} at ${perSecond}/s: commit to arrival p50 ${ms(p50)}, p95 ${ms(p95)}`);
      await arena.close();
    }
  }
}

async function benchHang(postgres: string, receivers: Receivers): Promise<void> {
  for (const [name, kind, url] of contenders(postgres)) {
    const arena = await openArena(kind, url, receivers, false);
    await latency(arena, receivers, 200, 0, false, 3); // warm
    const [without, hanging]: [number[], number[]] = [[], []];
    let from = 1_000_000;
    const rounds = kind === 'sluice' ? 3 : 1;
    for (let round = 0; round < rounds; round++) {
      for (const hang of [false, true]) {
        await receivers.hang(hang);
        const { p95 } = await latency(arena, receivers, 200, from, true);
        (hang ? hanging : without).push(p95);
        from += 1_000_000;
      }
    }
    await receivers.hang(false, false);
    const [before, after] = [median(without), median(hanging)];
    const mark = kind === 'sluice' ? verdict(after < before * 1.2) : '      ';
    console.log(
      `${mark}  ${name.padEnd(24)} at 200/s, one in ten hangs: p95 of the others ${ms(after)}, without ${ms(before)}, ` +
        `${(after / before).toFixed(2)} ×`,
    );
    await receivers.take();
    await arena.close();
  }
}

const parts = { drain: benchDrain, latency: benchLatency, hang: benchHang };
const chosen = process.argv.slice(3).filter((name) => name in parts) as (keyof typeof parts)[];
const postgres = await startPostgres();
const receivers = await Receivers.open();
try {
  for (const name of chosen.length > 0 ? chosen : (Object.keys(parts) as (keyof typeof parts)[])) {
    await parts[name](postgres.url, receivers);
  }
} finally {
  await receivers.close();
  await postgres.stop();
}
process.exit(0);
