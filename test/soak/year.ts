// npm run soak -- year [--months N] [--deployments N]: a year of an ordinary team on a moved clock. One control plane on
// SQLite with its router and the stand-in, 20 projects, deployments and visits every day, a webhook, domains whose
// certificates are renewed. Month by month it prints what the database, the logs and the memory have grown to, and what a
// deployment and a page cost. See docs/soak.md.
import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { readDatabaseSize } from '../../src/db/database-size.ts';
import type { Clock, Timers } from '../../src/lib/clock.ts';
import { createLog } from '../../src/lib/log.ts';
import { call, isolatedEnv } from '../helpers/app.ts';
import { answering, Receiver } from '../helpers/receiver.ts';
import { ask } from '../helpers/router.ts';
import { until } from '../helpers/wait.ts';

const dayMs = 86_400_000;
const daysPerMonth = 30;
const projects = 20;
/** The clock moves in steps, and between two of them every loop that has become due runs. */
const stepsPerDay = 4;
/** Rounds, of which the median counts, and pages of each; so few rows that a page is full after a month. */
const pages = { rounds: 7, each: 60, rows: 5 };

interface MovedClock {
  clock: Clock;
  timers: Timers;
  move(ms: number): void;
}

/** A clock that goes as fast as time, and forward when it is told to; and what waits by it. */
function movedClock(): MovedClock {
  let aheadMs = 0;
  const waiting = new Set<{ at: number; run(): void }>();
  const monotonic = () => performance.now() + aheadMs;
  const after = (delayMs: number, work: () => void) => {
    const cancel = () => {
      clearTimeout(timer);
      waiting.delete(entry);
    };
    const run = () => {
      cancel();
      work();
    };
    const entry = { at: monotonic() + delayMs, run };
    const timer = setTimeout(run, delayMs);
    waiting.add(entry);
    return cancel;
  };
  return {
    clock: { now: () => Math.floor(Date.now() + aheadMs), monotonic },
    timers: { now: monotonic, after },
    move(ms) {
      aheadMs += ms;
      for (const entry of [...waiting]) if (entry.at <= monotonic()) entry.run();
    },
  };
}

interface Month {
  database: number;
  free: number;
  logs: number;
  heap: number;
  rows: number;
  msPerDeployment: number;
  msPerPage: number;
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

const megabytes = (bytes: number): string => (bytes / 1_000_000).toFixed(1);

/** Resolves with the exit code. */
export async function year(args: string[]): Promise<number> {
  const options = { months: { type: 'string' }, deployments: { type: 'string' } } as const;
  const { values } = parseArgs({ args, options });
  const months = Number(values.months ?? 12);
  const perDay = Number(values.deployments ?? 40);
  const { clock, timers, move } = movedClock();
  const isolated = await isolatedEnv();
  const receiver = await Receiver.open(answering(200));
  const config = readConfig(isolated.env, false);
  const silent = createLog({ level: 'silent', format: 'json' }); // every step of a loop takes hours by this clock
  const overrides = { clock, timers, log: silent, standinInProcess: true, tokenLimit: 100_000_000 };
  const app = await createApp(config, overrides);
  const url = app.apiUrl();
  const v1 = async (method: string, path: string, body?: object) => {
    const result = await call(url, method, `/v1${path}`, body ? { body } : {});
    if (result.status >= 400) throw new Error(`${method} ${path}: ${result.status} ${JSON.stringify(result.body)}`);
    return result.body;
  };
  const seen: Month[] = [];
  try {
    const ids: string[] = [];
    for (let n = 0; n < projects; n++) {
      const { id } = await v1('POST', '/projects', { name: `Team ${n}`, slug: `team-${n}` });
      await v1('PATCH', `/projects/${id}/environments/production`, {
        drain_s: 0,
        health_check: { interval_s: 1, healthy_after: 1 },
      });
      await v1('POST', `/projects/${id}/domains`, { hostname: `team-${n}.test`, environment: 'production' });
      ids.push(id);
    }
    await v1('POST', '/webhooks', { url: receiver.url, events: ['*'] });
    const routerPort = Number(new URL(app.routerUrl!).port);
    const deploy = async (n: number, image: string) => {
      const project = ids[n % projects]!;
      const body = { environment: 'production', image };
      const { id } = await v1('POST', `/projects/${project}/deployments`, body);
      const path = `/projects/${project}/deployments/${id}`;
      await until('its end', async () => (await v1('GET', path)).finished_at !== null, 120_000);
      await ask(routerPort, { host: `team-${n % projects}-production.localhost` });
    };
    console.log(
      'month | database MB | of it free | rows that grow | log MB | heap MB | CPU ms a deployment | CPU ms a page',
    );
    let deployed = 0;
    for (let month = 1; month <= months; month++) {
      const before = cpuMs();
      const first = deployed;
      for (let day = 0; day < daysPerMonth; day++) {
        for (let left = perDay; left > 0; left -= projects) {
          const round = Array.from({ length: Math.min(projects, left) }, () => deployed++);
          await Promise.all(round.map((n) => deploy(n, `registry.example/team:${n}`)));
        }
        receiver.arrivals.length = 0; // what the receiver keeps is none of the service's memory
        for (let step = 0; step < stepsPerDay; step++) {
          move(dayMs / stepsPerDay);
          for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
        }
      }
      const msPerDeployment = (cpuMs() - before) / (deployed - first);
      seen.push(await measure(msPerDeployment));
      print(month, seen.at(-1)!);
    }
    return judge(seen);

    async function measure(msPerDeployment: number): Promise<Month> {
      collectGarbage();
      const heap = process.memoryUsage().heapUsed;
      const rounds: number[] = [];
      for (let round = 0; round < pages.rounds; round++) {
        const before = cpuMs();
        for (let n = 0; n < pages.each; n++) {
          const path = n % 2 === 0 ? `/projects/${ids[n % projects]}/deployments` : '/audit-log';
          await v1('GET', `${path}?limit=${pages.rows}`);
        }
        rounds.push((cpuMs() - before) / pages.each);
      }
      const msPerPage = rounds.sort((a, b) => a - b)[pages.rounds >> 1]!;
      const { bytes, free, rows } = await readDatabaseSize(app.store.db);
      const logs = globSync(join(isolated.dataDir, 'logs/**')).map((path) => statSync(path).size);
      return {
        ...{ database: bytes, free: free ?? 0, heap, msPerDeployment, msPerPage },
        rows: [...rows.values()].reduce((sum, count) => sum + count, 0),
        logs: logs.reduce((sum, size) => sum + size, 0),
      };
    }
  } finally {
    await app.stop();
    await receiver.close();
    await isolated.clean();
  }
}

function print(month: number, { database, free, rows, logs, heap, msPerDeployment, msPerPage }: Month): void {
  const cells = [month, megabytes(database), megabytes(free), rows, megabytes(logs), megabytes(heap)];
  console.log([...cells, msPerDeployment.toFixed(1), msPerPage.toFixed(2)].join(' | '));
}

/** What is kept for 90 days has its size after four months; the audit log has it after a year. */
const settledMonth = 4;
const longest = { database: 1.6, heap: 1.3, cost: 1.5 };

function judge(seen: Month[]): number {
  const [first, settled, last] = [seen[0]!, seen[settledMonth - 1], seen.at(-1)!];
  if (!settled || settled === last) return 0;
  const grown: [what: string, times: number, atMost: number][] = [
    ['the database, from month 4 to the last', last.database / settled.database, longest.database],
    ['the heap, from month 4 to the last', last.heap / settled.heap, longest.heap],
    ['what a deployment costs, from month 1 to the last', last.msPerDeployment / first.msPerDeployment, longest.cost],
    ['what a page costs, from month 1 to the last', last.msPerPage / first.msPerPage, longest.cost],
  ];
  for (const [what, times, atMost] of grown) {
    console.log(`${times <= atMost ? 'ok' : 'VIOLATION'}: ${what}: ${times.toFixed(2)} times, at most ${atMost}`);
  }
  return grown.every(([, times, atMost]) => times <= atMost) ? 0 : 1;
}
