// npm run bench -- peers [load] [deploy]
//   load     requests for each second of processor time: small bodies, 1 MB, over TLS, with a handshake each
//   deploy   failed requests while each goes from one version to the next in its own way
//
// Sluice's two data planes beside what people would take instead: nginx, Caddy, and kamal-proxy where it is on the PATH.
// All stand before the same backend and are loaded in turns by wrk. Compared is processor time: requests a second would
// say how many threads each of them starts.
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'undici';
import { installMissing } from '../scripts/packages.ts';
import { cpuSeconds, median } from './lib/measure.ts';
import { note } from './lib/report.ts';
import { startSluice } from './peers/deploying.ts';
import { type MovableRouter, type PeerRouter, peers, plainHost, secureHost } from './peers/routers.ts';
import { type Nginx, startBackend } from './router/nginx.ts';
import { loadHost, tlsRequestsPerSecond } from './router/router-load.ts';

/** `BENCH_ROUNDS=1` to try it out. */
const rounds = Number(process.env.BENCH_ROUNDS ?? 5);
const seconds = 3;

const secureUrl = ({ tlsPort }: PeerRouter) => `https://${secureHost}:${tlsPort}/small`;

/** Each gives the number of requests that were answered. */
const loads: Record<string, (router: PeerRouter) => Promise<number>> = {
  'small bodies': async ({ port }) => (await loadHost({ port, host: plainHost, connections: 64, seconds })).requests,
  '1 MB bodies': async ({ port }) =>
    (await loadHost({ port, host: plainHost, path: '/large', connections: 16, seconds })).requests,
  'small bodies over TLS': async (router) =>
    seconds * (await tlsRequestsPerSecond({ url: secureUrl(router), connections: 64, seconds, handshakes: false })),
  'a TLS handshake each': async (router) =>
    seconds * (await tlsRequestsPerSecond({ url: secureUrl(router), connections: 16, seconds, handshakes: true })),
};

async function perCpuSecond(router: PeerRouter, load: (router: PeerRouter) => Promise<number>): Promise<number> {
  const pids = router.carriers();
  const before = cpuSeconds(pids);
  const requests = await load(router);
  return requests / (cpuSeconds(pids) - before);
}

const count = (value: number): string => Math.round(value).toLocaleString('en');

async function benchLoad(): Promise<void> {
  const backend = await startBackend('stable');
  const routers: PeerRouter[] = [];
  try {
    for (const { start } of peers) routers.push(await start(backend.port));
    await compareLoads(routers);
  } finally {
    for (const router of routers) await router.stop();
    await backend.stop();
  }
}

async function compareLoads(routers: PeerRouter[]): Promise<void> {
  const nginx = routers.find(({ name }) => name.startsWith('nginx'))!;
  for (const [what, load] of Object.entries(loads)) {
    const rates = new Map<PeerRouter, number[]>(routers.map((router) => [router, []]));
    for (let round = 0; round <= rounds; round++) {
      for (const router of routers) {
        const rate = await perCpuSecond(router, load);
        if (round > 0) rates.get(router)!.push(rate); // the first one warms up
      }
    }
    const of = (router: PeerRouter) => median(rates.get(router)!);
    for (const router of routers) {
      note(
        `${what}: ${router.name} / nginx`,
        (of(router) / of(nginx)).toFixed(2),
        `${count(of(router))} a second of CPU`,
      );
    }
  }
}

interface Visits {
  all: number;
  failed: number;
  longestMs: number;
}

/** Visits over kept connections until `work` is over and a second longer. Nothing is asked twice. */
async function visitDuring(url: string, headers: Record<string, string>, work: () => Promise<void>): Promise<Visits> {
  const pool = new Pool(url, { connections: 16, pipelining: 1 });
  const visits: Visits = { all: 0, failed: 0, longestMs: 0 };
  let isOver = false;
  const visit = async () => {
    while (!isOver) {
      const startedAt = performance.now();
      visits.all++;
      const status = await pool
        .request({ method: 'GET', path: '/small', headers })
        .then(async ({ statusCode, body }) => body.dump().then(() => statusCode))
        .catch(() => null);
      if (status !== 200) visits.failed++;
      visits.longestMs = Math.max(visits.longestMs, performance.now() - startedAt);
      await wait(5);
    }
  };
  const all = Promise.all(Array.from({ length: 16 }, visit));
  try {
    await wait(500);
    await work();
    await wait(1000);
  } finally {
    isOver = true;
    await all;
    await pool.destroy();
  }
  return visits;
}

const deployments = 5;

/** The old version ends, gracefully, as soon as the router says that the new one has taken over. */
async function moveAgainAndAgain(router: MovableRouter, first: Nginx): Promise<Visits> {
  let current = first;
  const visits = await visitDuring(`http://127.0.0.1:${router.port}`, { host: plainHost }, async () => {
    for (let n = 0; n < deployments; n++) {
      const next = await startBackend(`version ${n}`);
      await router.moveTo(next.port);
      await current.stop(true);
      current = next;
    }
  });
  await current.stop();
  return visits;
}

async function benchDeploy(): Promise<void> {
  const tell = (name: string, { all, failed, longestMs }: Visits) =>
    note(
      `failed requests during ${deployments} deployments: ${name}`,
      count(failed),
      `of ${count(all)}, longest ${longestMs.toFixed(0)} ms`,
    );
  for (const plane of ['builtin', 'haproxy'] as const) {
    const sluice = await startSluice(plane);
    const visits = await visitDuring(`http://127.0.0.1:${sluice.port}`, { host: sluice.host }, async () => {
      for (let n = 2; n < 2 + deployments; n++) await sluice.deploy(n);
    });
    tell(sluice.name, visits);
    await sluice.stop();
  }
  for (const { start } of peers) {
    const backend = await startBackend('version 0');
    const router = await start(backend.port);
    if ('moveTo' in router) tell(router.name, await moveAgainAndAgain(router, backend));
    else await backend.stop();
    await router.stop();
  }
}

const parts = { load: benchLoad, deploy: benchDeploy };
process.setMaxListeners(50); // each server and folder is removed at the exit
installMissing(['wrk', 'nginx', 'haproxy', 'caddy']);
const chosen = process.argv.slice(3).filter((name) => name in parts) as (keyof typeof parts)[];
try {
  for (const name of chosen.length > 0 ? chosen : (Object.keys(parts) as (keyof typeof parts)[])) await parts[name]();
} catch (error) {
  console.error(error);
  process.exit(1);
}
process.exit(0);
