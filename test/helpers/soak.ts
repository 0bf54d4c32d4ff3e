// Events to receivers that fail, hang, drop connections and restart, while the service is killed again and again. What
// must hold at the end: every event arrived at its receiver, with the same bytes and a right signature each time, and a
// second time only where an answer was lost.
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Db } from '../../src/db/database.ts';
import { openDatabase } from '../../src/db/open-database.ts';
import { call, isolatedEnv } from './app.ts';
import { freePort } from './free-port.ts';
import { ownProcessArgs, ownProcessEnv } from './own-process.ts';
import { until } from './wait.ts';

interface Arrival {
  at: number;
  /** When it was answered with 2xx; null: it was not, or the answer was lost. */
  answeredAt: number | null;
}

type Trouble = (count: number, response: ServerResponse) => 'lost' | 'answer';

/** How the receivers behave, one after the other: well, failing, hanging, dropping connections, slow, well. */
const troubles: Trouble[] = [
  () => 'answer',
  (count, response) => {
    if (count % 10 !== 0) return 'answer';
    response.writeHead(500).end('not now');
    return 'lost';
  },
  (count) => (count % 200 === 0 ? 'lost' : 'answer'),
  (count, response) => {
    if (count % 15 !== 0) return 'answer';
    response.socket!.destroy();
    return 'lost';
  },
  () => 'answer',
];
/** This one restarts now and then. */
const restarting = 4;
/** An answer that left shortly before its connection was cut may not have been read, on a busy machine for this long. */
const inKernelMs = 1000;
/** How long it may take until an answer is written down; a kill within that time makes it a lost one. */
const writtenWithinMs = 5000;

class SoakReceiver {
  /** By event. */
  readonly arrivals = new Map<string, Arrival[]>();
  readonly bodies = new Map<string, string>();
  readonly faults: string[] = [];
  readonly restarts: number[] = [];
  secret = '';
  #count = 0;
  #port: number | undefined;
  #server!: Server;
  readonly #trouble: Trouble;

  constructor(trouble: Trouble) {
    this.#trouble = trouble;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/`;
  }

  async open(): Promise<void> {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => this.#take(Buffer.concat(chunks), request.headers, response));
    });
    this.#port ??= await freePort();
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async restart(): Promise<void> {
    this.restarts.push(Date.now());
    await this.close();
    await this.open();
  }

  #take(bytes: Buffer, headers: NodeJS.Dict<string | string[]>, response: ServerResponse): void {
    const body = bytes.toString('utf8');
    const id = headers['webhook-id'] as string;
    const signature = createHmac('sha256', this.secret).update(bytes).digest('hex');
    if (headers['x-service-signature'] !== signature) this.faults.push(`signature of ${id}`);
    if ((this.bodies.get(id) ?? body) !== body) this.faults.push(`bytes of ${id}`);
    this.bodies.set(id, body);
    const arrival: Arrival = { at: Date.now(), answeredAt: null };
    const known = this.arrivals.get(id);
    if (known) known.push(arrival);
    else this.arrivals.set(id, [arrival]);
    if (this.#trouble(++this.#count, response) === 'lost') return;
    response.on('finish', () => {
      arrival.answeredAt = Date.now();
    });
    response.writeHead(200).end();
  }
}

export interface SoakResult {
  events: number;
  kills: number;
  arrivals: number;
  /** Came again although an answer had been sent: the kill or the restart took it away, or it came too late. */
  repeatedAfterAnswer: number;
  repeatedAfterFailure: number;
  seconds: number;
}

interface Progress {
  produced: number;
  pending: number;
}

class SoakService {
  child!: ChildProcess;
  url = '';
  progress: Progress = { produced: 0, pending: 0 };
  readonly #env: Record<string, string>;

  constructor(env: Record<string, string>) {
    this.#env = env;
  }

  async start(): Promise<void> {
    this.child = fork(join(import.meta.dirname, 'soak-service.ts'), [], {
      execArgv: ownProcessArgs,
      env: { PATH: process.env.PATH, ...ownProcessEnv, ...this.#env },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const child = this.child;
    const died = once(child, 'exit').then(([code]) => Promise.reject(new Error(`the service ended with ${code}`)));
    const [{ url }] = (await Promise.race([once(child, 'message'), died])) as [{ url: string }];
    died.catch(() => {});
    this.url = url;
    child.on('message', (message: Progress) => {
      this.progress = message;
    });
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const exited = once(this.child, 'exit');
    this.child.kill(signal);
    await exited;
  }
}

export async function soak(events: number, kills: number, say: (line: string) => void): Promise<SoakResult> {
  const isolated = await isolatedEnv();
  const service = new SoakService({ ...isolated.env, SLUICE_LOG_LEVEL: 'silent', SOAK_EVENTS: String(events) });
  const receivers = troubles.map((trouble) => new SoakReceiver(trouble));
  const killedAt: number[] = [];
  const startedAt = Date.now();
  try {
    for (const receiver of receivers) await receiver.open();
    await service.start();
    for (const receiver of receivers) await subscribe(service.url, receiver);
    service.child.send('produce');
    const arrived = () => receivers.reduce((sum, { arrivals }) => sum + arrivals.size, 0);
    for (let kill = 1; kill <= kills; kill++) {
      const mark = Math.floor((events * kill) / (kills + 1));
      await until(`${mark} arrivals`, () => (arrived() >= mark ? true : undefined), 600_000);
      if (kill % 2 === 1) await receivers[restarting]!.restart();
      killedAt.push(Date.now());
      await service.end('SIGKILL');
      say(`kill ${kill} after ${arrived()} events arrived, ${Math.round((Date.now() - startedAt) / 1000)} s`);
      await service.start();
      service.child.send('produce');
    }
    await until(
      'everything to arrive',
      () => (service.progress.produced === events && service.progress.pending === 0 ? true : undefined),
      900_000,
    );
    await service.end('SIGTERM');
    const repeated = await check(isolated.env, receivers, events, killedAt);
    const arrivals = receivers.reduce((sum, one) => sum + [...one.arrivals.values()].flat().length, 0);
    return { events, kills, arrivals, ...repeated, seconds: Math.round((Date.now() - startedAt) / 1000) };
  } finally {
    if (service.child?.exitCode === null && service.child.signalCode === null) await service.end('SIGKILL');
    for (const receiver of receivers) await receiver.close().catch(() => {});
    await isolated.clean();
  }
}

async function subscribe(url: string, receiver: SoakReceiver): Promise<void> {
  const project = await call(url, 'POST', '/v1/projects', { body: { name: 'Soak' } });
  const body = { url: receiver.url, events: ['*'], project_id: project.body.id };
  const webhook = await call(url, 'POST', '/v1/webhooks', { body });
  assert.equal(webhook.status, 201, JSON.stringify(webhook.body));
  receiver.secret = webhook.body.secret;
}

/** By event, what the service knows of its attempts. */
async function listAttempts(db: Db) {
  const rows = await db
    .selectFrom('attempt')
    .innerJoin('delivery', 'delivery.id', 'attempt.delivery_id')
    .select(['delivery.event_id', 'attempt.at', 'attempt.duration_ms', 'attempt.status', 'attempt.error'])
    .orderBy('attempt.at')
    .execute();
  return Map.groupBy(rows, ({ event_id }) => event_id);
}

async function check(
  env: Record<string, string>,
  receivers: SoakReceiver[],
  events: number,
  killedAt: number[],
): Promise<{ repeatedAfterAnswer: number; repeatedAfterFailure: number }> {
  const opened = { url: env.SLUICE_DATABASE_URL ?? null, dataDir: env.SLUICE_DATA_DIR!, onConnectionLost: () => {} };
  const { db, close } = await openDatabase(opened);
  let attempts: Awaited<ReturnType<typeof listAttempts>>;
  try {
    attempts = await listAttempts(db);
    const rows = await db.selectFrom('event').select(['id', 'body']).execute();
    assert.equal(rows.length, events);
    const bodies = new Map(receivers.flatMap((one) => [...one.bodies]));
    for (const { id, body } of rows) assert.equal(bodies.get(id), body, `${id} did not arrive as it is stored`);
    assert.equal(bodies.size, events, 'nothing arrived that is not an event');
    const states = await db.selectFrom('delivery').select('state').groupBy('state').execute();
    assert.deepEqual(
      states.map(({ state }) => state),
      ['succeeded'],
    );
  } finally {
    await close();
  }
  assert.deepEqual(
    receivers.flatMap(({ faults }) => faults),
    [],
  );
  let [repeatedAfterAnswer, repeatedAfterFailure] = [0, 0];
  for (const { arrivals, restarts } of receivers) {
    for (const [id, all] of arrivals) {
      for (const { at: arrivedAt, answeredAt } of all.slice(0, -1)) {
        if (answeredAt === null) {
          repeatedAfterFailure++;
          continue;
        }
        repeatedAfterAnswer++;
        const within = (ms: number) => (at: number) => at >= answeredAt - inKernelMs && at - answeredAt < ms;
        const known = attempts.get(id) ?? [];
        // No answer had come in time; on a busy machine it may have been sent.
        const isGivenUp = known.some(
          ({ at, duration_ms, error }) =>
            error?.startsWith('no answer within') && arrivedAt >= at && arrivedAt <= at + duration_ms,
        );
        const lost = killedAt.some(within(writtenWithinMs)) || restarts.some(within(inKernelMs)) || isGivenUp;
        const seen = JSON.stringify({ arrivals: all, attempts: known, killedAt, restarts });
        assert.ok(lost, `${id} came again although its answer cannot have been lost: ${seen}`);
      }
    }
  }
  return { repeatedAfterAnswer, repeatedAfterFailure };
}
