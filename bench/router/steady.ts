// How steady requests are while the control plane is in trouble or busy, at 10,000 environments: the 99th percentile
// and the longest request of a paced load, in turns undisturbed and disturbed.

import { median } from '../lib/measure.ts';
import { note, report } from '../lib/report.ts';
import { type Nginx, startBackend } from './nginx.ts';
import { hostOf, type Installation, openInstallation, type Router } from './router-installation.ts';
import { bodyAt, loadHost, type WrkResult } from './router-load.ts';

/** `BENCH_ROUNDS=1` to try it out. */
const rounds = Number(process.env.BENCH_ROUNDS ?? 7);
const seconds = 6;
const environments = 10_000;
const blockedMs = 5000;
const changeEveryMs = 100;
/** Answers in a row, each over a connection of its own, after which a change counts as in force at every worker. */
const answersInARow = 4;

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface Scene {
  installation: Installation;
  router: Router;
  backends: [Nginx, Nginx];
}

/** What happens during the load. Resolves when it is over, at the latest with the load. */
type Disturbance = (scene: Scene) => Promise<void>;

async function blockControl({ router }: Scene): Promise<void> {
  const pid = router.control();
  process.kill(pid, 'SIGSTOP');
  await wait(blockedMs);
  process.kill(pid, 'SIGCONT');
}

/** A new control process gives every worker the whole table again. */
async function reloadAll({ router }: Scene): Promise<void> {
  process.kill(router.control(), 'SIGKILL');
}

const tookMs: number[] = [];

async function changeOne({ installation, router, backends }: Scene): Promise<void> {
  const endAt = performance.now() + seconds * 1000 - 500;
  for (let n = 0; performance.now() < endAt; n++) {
    const [from, to] = n % 2 === 0 ? backends : [backends[1], backends[0]];
    await installation.moveFirst(to.port);
    const committedAt = performance.now();
    const name = to === backends[1] ? 'two' : 'one';
    let inForceMs = 0;
    for (let seen = 0; seen < answersInARow; ) {
      const askedAt = performance.now();
      if ((await bodyAt(router.port, hostOf(0))) !== name) seen = 0;
      else if (seen++ === 0) inForceMs = askedAt - committedAt;
      if (askedAt - committedAt > 10_000) throw new Error(`${from.port} → ${to.port} is not in force after 10 s`);
    }
    tookMs.push(inForceMs);
    await wait(Math.max(0, committedAt + changeEveryMs - performance.now()));
  }
  if (tookMs.length % 2 === 1) await installation.moveFirst(backends[0].port);
}

const disturbances: Record<string, Disturbance> = {
  undisturbed: async () => {},
  'control plane blocked for 5 s': blockControl,
  'all environments loaded': reloadAll,
  'one environment changed every 100 ms': changeOne,
};

async function measure(scene: Scene, disturb: Disturbance): Promise<WrkResult> {
  const options = { port: scene.router.port, host: hostOf(1), connections: 16, seconds, pauseMs: 10 };
  const [result] = await Promise.all([loadHost(options), disturb(scene)]);
  await wait(1000); // what a disturbance left to do is no part of the next measurement
  return result;
}

export async function benchSteady(): Promise<void> {
  const installation = await openInstallation();
  const backends: [Nginx, Nginx] = [await startBackend('one'), await startBackend('two')];
  await installation.fill(environments, backends[0].port);
  const router = await installation.startRouter({ workers: 2 });
  const scene = { installation, router, backends };
  const results = new Map<string, WrkResult[]>(Object.keys(disturbances).map((name) => [name, []]));
  await measure(scene, disturbances.undisturbed!); // warm
  for (let round = 0; round < rounds; round++) {
    for (const [name, disturb] of Object.entries(disturbances)) results.get(name)!.push(await measure(scene, disturb));
  }
  const p99 = (name: string) => median(results.get(name)!.map(({ p99Ms }) => p99Ms));
  const longest = (name: string) => median(results.get(name)!.map(({ longestMs }) => longestMs));
  const text = (name: string) => `p99 ${p99(name).toFixed(2)} ms, longest ${longest(name).toFixed(1)} ms`;
  note('p99 undisturbed, 10,000 environments', `${p99('undisturbed').toFixed(2)} ms`, text('undisturbed'));
  for (const name of [...results.keys()].slice(1)) {
    const ratio = p99(name) / p99('undisturbed');
    const most = name === 'all environments loaded' ? 1.5 : 1.2;
    report(`p99 with ${name} / without`, ratio.toFixed(2), `≤ ${most}`, ratio <= most, text(name));
  }
  tookMs.sort((a, b) => a - b);
  const [middle, late] = [median(tookMs), tookMs[Math.floor(tookMs.length * 0.95)]!];
  const all = `${tookMs.length} changes, 95th percentile ${late.toFixed(1)} ms`;
  report('one change in force at 10,000 environments', `${middle.toFixed(1)} ms`, '< 50 ms', middle < 50, all);
  const stall = longest('one environment changed every 100 ms') - longest('undisturbed');
  report('longest request, with changes − without', `${stall.toFixed(1)} ms`, '< 10 ms', stall < 10, 'medians');
  await router.stop();
  await Promise.all(backends.map((backend) => backend.stop()));
  await installation.stop();
}
