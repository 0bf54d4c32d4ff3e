// How what people wait for, and what an idle service costs, grows with what they do not touch: with the environments of
// others, with events of the past, with endpoints of others. The exponent says it: 0 is not at all, 1 in proportion.
// (Domains: npm run bench -- domains.)
import { setTimeout as wait } from 'node:timers/promises';
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import type { Db } from '../../src/db/database.ts';
import { adminToken, isolatedEnv } from '../../test/helpers/app.ts';
import { freePort } from '../../test/helpers/free-port.ts';
import { createDatabase, startPostgres } from '../../test/helpers/postgres.ts';
import { Shop } from '../../test/helpers/shop.ts';
import { until } from '../../test/helpers/wait.ts';
import { cpuSeconds, median } from '../lib/measure.ts';
import { residentMib, startServer } from '../lib/processes.ts';
import { note, report } from '../lib/report.ts';
import { fillEndpoints, fillEvents, fillInstallation } from './scale-installation.ts';

interface Kind {
  what: string;
  sizes: number[];
  fill(db: Db, count: number, nowMs: number): Promise<void>;
}

const kinds: Kind[] = [
  { what: 'environments', sizes: [10, 1000, 10_000, 50_000], fill: fillInstallation },
  {
    what: 'events',
    sizes: [1000, 1_000_000],
    async fill(db, count, nowMs) {
      await fillInstallation(db, 1, nowMs);
      const { account_id } = await db.selectFrom('project').select('account_id').executeTakeFirstOrThrow();
      await fillEvents(db, account_id, count, nowMs);
    },
  },
  { what: 'endpoints', sizes: [10, 10_000], fill: fillEndpoints },
];

/** In milliseconds, but for the last two: percent of a core, and MiB. */
interface Grown {
  start: number;
  read: number;
  list: number;
  change: number;
  deployment: number;
  idle: number;
  memory: number;
}

const waitedFor: [keyof Grown, string][] = [
  ['read', 'GET of a project'],
  ['list', 'first page of events'],
  ['change', 'PATCH of an environment'],
  ['deployment', 'a deployment'],
];

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function often(rounds: number, work: (round: number) => Promise<unknown>): Promise<number> {
  const took: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const ms = await timed(() => work(round));
    if (round > 0) took.push(ms);
  }
  return median(took);
}

const idleS = 10;

/** Percent of a core, once what a start leaves to do is done. */
async function idleShare(pid: number): Promise<number> {
  const shareOf = async (seconds: number) => {
    const before = cpuSeconds([pid]);
    await wait(seconds * 1000);
    return ((cpuSeconds([pid]) - before) / seconds) * 100;
  };
  let last = await shareOf(5);
  for (let round = 0; round < 60; round++) {
    const share = await shareOf(5);
    if (share < 5 || Math.abs(share - last) < last / 20) break;
    last = share;
  }
  return shareOf(idleS * 2);
}

async function measure(kind: Kind, count: number, postgresUrl: string): Promise<Grown> {
  const [database, isolated] = [await createDatabase(postgresUrl), await isolatedEnv()];
  const env = { ...isolated.env, SLUICE_DATABASE_URL: database.url, SLUICE_LOG_LEVEL: 'error' };
  const app = await createApp(readConfig({ ...env, SLUICE_ROLES: 'api' }, false));
  await kind.fill(app.store.db, count, app.clock.now());
  await app.stop();
  const [port, tls] = [await freePort(), await freePort()];
  const startedAt = performance.now();
  const server = await startServer('../scale/growing-server.ts', {
    ...(env as Record<string, string>),
    SLUICE_REGIONS: 'side=standin:,local=standin:',
    SLUICE_ROUTER_PORT: String(port),
    SLUICE_ROUTER_TLS_PORT: String(tls),
    BENCH_ENVIRONMENTS: String(kind.what === 'environments' ? count : kind.what === 'events' ? 1 : 0),
  });
  try {
    const isReady = async () => (await fetch(`${server.url}/readyz`)).ok || undefined;
    await until('the service to be ready', isReady, 120_000, 10);
    const start = performance.now() - startedAt;
    const idle = await idleShare(server.pid);
    const memory = residentMib(server.pid);
    const shop = await Shop.open(server.url);
    await shop.released('registry.example/shop:0');
    const get = (path: string) =>
      fetch(`${server.url}/v1${path}`, { headers: { authorization: `Bearer ${adminToken}` } }).then((answer) => {
        if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
        return answer.arrayBuffer();
      });
    return {
      ...{ start, idle, memory },
      read: await often(200, () => get(`/projects/${shop.project}`)),
      list: await often(50, () => get('/events?limit=20')),
      change: await often(50, (round) => shop.set({ drain_s: round % 2 })),
      deployment: await often(5, (round) => shop.released(`registry.example/shop:${round + 1}`)),
    };
  } finally {
    await server.stop();
    await isolated.clean();
  }
}

/** The slope of a straight line through the logarithms, by least squares. */
function exponent(points: [number, number][]): number {
  const logs = points.map(([size, value]) => [Math.log(size), Math.log(value)] as const);
  const mean = (of: (one: readonly [number, number]) => number) =>
    logs.reduce((sum, one) => sum + of(one), 0) / logs.length;
  const [x, y] = [mean(([size]) => size), mean(([, value]) => value)];
  return mean(([size, value]) => (size - x) * (value - y)) / mean(([size]) => (size - x) ** 2);
}

export async function benchGrowth(): Promise<void> {
  const postgres = await startPostgres();
  for (const kind of kinds) {
    const all: [number, Grown][] = [];
    for (const count of kind.sizes) all.push([count, await measure(kind, count, postgres.url)]);
    const sizes = kind.sizes.map((count) => count.toLocaleString('en')).join(', ');
    const values = (of: keyof Grown, digits: number, unit: string) =>
      `${all.map(([, grown]) => grown[of].toFixed(digits)).join(', ')} ${unit}`;
    console.log(`with ${sizes} ${kind.what}:`);
    for (const [key, name] of waitedFor) {
      const slope = exponent(all.map(([count, grown]) => [count, grown[key]]));
      report(`${name}, exponent of ${kind.what}`, slope.toFixed(2), '≤ 0.1', slope <= 0.1, values(key, 1, 'ms'));
    }
    note(`start until ready, ${kind.what}`, '', values('start', 0, 'ms'));
    note(`idle, ${kind.what}`, '', values('idle', 1, '% of a core'));
    const [few, many] = [all[0]!, all.at(-1)!];
    const each = ((many[1].memory - few[1].memory) * 1024) / (many[0] - few[0]);
    note(`memory, ${kind.what}`, `${each.toFixed(1)} kB`, `each; in all ${values('memory', 0, 'MiB')}`);
  }
  await postgres.stop();
}
