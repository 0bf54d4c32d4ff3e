// One of the compared queues, as the process that creates the jobs, as the one that sends them, or as both.
import { createHmac } from 'node:crypto';
import { type Runner, run as runGraphile } from 'graphile-worker';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { Agent } from 'undici';
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { openDatabaseClock } from '../../src/db/database-clock.ts';
import { scopeOf } from '../../src/db/transactions.ts';
import { insertEvent } from '../../src/events/outbox.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createIds } from '../../src/lib/ids.ts';
import { createLog } from '../../src/lib/log.ts';
import { createLoops } from '../../src/lib/loops.ts';
import { connectProcesses } from '../../src/signals/process-signals.ts';
import { openStore } from '../../src/store.ts';

interface Contender {
  /** Commits the job with this number. Gives when it was committed. */
  produce(n: number): Promise<number>;
  /** Starts sending. */
  work(): Promise<void>;
}

const { BENCH_KIND, BENCH_ROLE, BENCH_URLS, BENCH_POSTGRES, BENCH_PROJECTS } = process.env;
const urls: string[] = JSON.parse(BENCH_URLS!);
const text = 'x'.repeat(1000);
/** As many requests as Sluice may have in flight to ten receivers. */
const concurrency = 320;
const now = () => performance.timeOrigin + performance.now();

/** The same signed POST that Sluice sends, with the same kind of client. */
const agent = new Agent({ connections: null, pipelining: 1, keepAliveTimeout: 30_000 });
async function post(job: { n: number; text: string }): Promise<void> {
  const body = JSON.stringify(job);
  const signature = createHmac('sha256', 'whsec_0123456789').update(body).digest('hex');
  const { statusCode, body: answer } = await agent.request({
    origin: urls[job.n % urls.length]!,
    path: '/',
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-signature': signature },
    body,
    signal: AbortSignal.timeout(15_000),
  });
  await answer.text();
  if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
}

async function sluice(): Promise<Contender> {
  const config = readConfig(process.env, false);
  const projects: { id: string; account_id: string }[] = JSON.parse(BENCH_PROJECTS!);
  const ids = createIds(systemClock);
  const app = BENCH_ROLE === 'produce' ? null : await createApp(config, { tokenLimit: 1e9 });
  const log = createLog({ level: 'silent', format: 'json' });
  const store = app?.store ?? (await openStore(config, () => {}));
  const { db, dialect } = store;
  const loops = createLoops(log);
  const clock = app?.clock ?? (await openDatabaseClock(dialect, { db, clock: systemClock, log, loops })).clock;
  if (!app) connectProcesses({ db, databaseUrl: config.databaseUrl!, processId: 'bench', log, loops });
  return {
    async produce(n) {
      const { id: projectId, account_id: accountId } = projects[n % projects.length]!;
      const event = { type: 'alert.fired', accountId, projectId, data: { n, text } } as const;
      let committedAt = 0;
      await db.transaction().execute((tx) => {
        // In one process, the claim may begin before this function is back.
        scopeOf(tx)!.onCommit.push(() => (committedAt = now()));
        return insertEvent(tx, { ids, clock }, event);
      });
      return committedAt;
    },
    work: async () => {},
  };
}

async function pgBoss(): Promise<Contender> {
  const boss = new PgBoss({ connectionString: BENCH_POSTGRES!, useListenNotify: true });
  boss.on('error', console.error);
  await boss.start();
  const queue = 'posts';
  await boss.createQueue(queue, { notify: true }).catch(() => {});
  return {
    async produce(n) {
      await boss.send(queue, { n, text });
      return now();
    },
    async work() {
      const options = {
        batchSize: 10,
        localConcurrency: concurrency / 10,
        pollingIntervalSeconds: 0.5,
        burstWhenBatchFull: true,
      };
      await boss.work<{ n: number; text: string }>(queue, options, async (jobs) => {
        await Promise.all(jobs.map(({ data }) => post(data)));
      });
    },
  };
}

async function graphile(): Promise<Contender> {
  const pool = new pg.Pool({ connectionString: BENCH_POSTGRES!, max: 10 });
  let runner: Runner | null = null;
  const preset = {
    worker: {
      connectionString: BENCH_POSTGRES!,
      concurrentJobs: concurrency,
      maxPoolSize: 10,
      localQueue: { size: concurrency + 1 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  };
  const { makeWorkerUtils, Logger } = await import('graphile-worker');
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ connectionString: BENCH_POSTGRES!, logger });
  await utils.migrate();
  return {
    async produce(n) {
      await pool.query("select graphile_worker.add_job('post', json_build_object('n', $1::int, 'text', $2::text))", [
        n,
        text,
      ]);
      return now();
    },
    async work() {
      const post_ = (payload: unknown) => post(payload as { n: number; text: string });
      runner = await runGraphile({ preset, logger, taskList: { post: post_ }, noHandleSignals: true });
      runner.promise.catch(console.error);
    },
  };
}

const contender = await { sluice, pgBoss, graphile }[BENCH_KIND as 'sluice']();

/** As fast as possible, or at a rate; gives when each job was committed. */
async function produce(from: number, count: number, perSecond: number | null): Promise<[number, number][]> {
  const committed: [number, number][] = [];
  const one = async (n: number) => {
    committed.push([n, await contender.produce(n)]);
  };
  let next = from;
  if (perSecond === null) {
    const writer = async () => {
      while (next < from + count) await one(next++);
    };
    await Promise.all(Array.from({ length: 8 }, writer));
    return committed;
  }
  const startedAt = performance.now();
  const dueAt = (n: number) => startedAt + ((n - from) * 1000) / perSecond;
  const writer = async () => {
    while (next < from + count) {
      const n = next++;
      const inMs = dueAt(n) - performance.now();
      if (inMs > 0) await new Promise((resolve) => setTimeout(resolve, inMs));
      await one(n);
    }
  };
  await Promise.all(Array.from({ length: 10 }, writer));
  return committed;
}

process.on(
  'message',
  async (message: { ask: 'work' | 'produce'; from: number; count: number; perSecond: number | null }) => {
    if (message.ask === 'work') {
      await contender.work();
      process.send!({});
    } else {
      process.send!({ committed: await produce(message.from, message.count, message.perSecond) });
    }
  },
);
process.on('disconnect', () => process.exit(0));
process.send!({});
