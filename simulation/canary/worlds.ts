// Rollouts with simulated visitors, judged as the service judges them: how often a canary that equals stable is undone, and
// how soon one that is worse is found.
import { type CanaryPolicy, environmentDefaults } from '../../src/contract/environments.ts';
import { judge, Measured } from '../../src/deployments/rules/analysis.ts';
import { buckets } from '../../src/traffic/balance.ts';
import { emptyLatency, latencyIndexOf } from '../../src/traffic/latency.ts';
import { type Answered, addToDetail, type Detail, noDetail, type Unit } from '../../src/traffic/request-detail.ts';

/** How one revision answers. */
export interface Behaviour {
  /** Share of requests that fail, each by itself. */
  errorRate?: number;
  /** Share of visitors whose requests all fail. */
  failingVisitors?: number;
  /** One instance fails half of its requests. */
  badInstance?: boolean;
  /** Of the paths that a fortieth of the requests go to, this many fail always. */
  deadPaths?: number;
  /** The checkout fails always. */
  deadCheckout?: boolean;
  medianMs?: number;
  /** The p95 in medians. */
  tail?: number;
  /** How many times slower it is in the first minute. */
  cold?: number;
}

export interface World {
  perSecond: number;
  share: number;
  /** Visitors with a cookie; null: every request comes without one. */
  visitors: number | null;
  stable: Behaviour;
  canary: Behaviour;
  instances?: number;
  /** Share of requests that go to a checkout. */
  checkout?: number;
  /** In some windows all requests of both sides fail at this rate. */
  blips?: number;
  /** In some phases both sides are several times slower. */
  slowPhases?: number;
  windows?: number;
  /** How often it is judged in each window; 1 unless told, at its end. */
  looks?: number;
  policy?: Partial<CanaryPolicy>;
}

export interface Ended {
  verdict: 'bad' | 'good' | 'inconclusive';
  /** When it was found bad: after how many windows, and requests to the canary. */
  afterWindows: number;
  requests: number;
  replaced: boolean;
}

export type Random = () => number;

/** Small, fast and the same on every machine (splitmix32). */
export function randomFrom(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let t = state ^ (state >>> 16);
    t = Math.imul(t, 0x21f0aaad);
    t ^= t >>> 15;
    t = Math.imul(t, 0x735a2d97);
    return ((t ^ (t >>> 15)) >>> 0) / 2 ** 32;
  };
}

function poisson(random: Random, mean: number): number {
  if (mean > 50) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(random)));
  const limit = Math.exp(-mean);
  let product = random();
  let n = 0;
  for (; product > limit; n++) product *= random();
  return n;
}

const normal = (random: Random): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** As many kinds of path, `/a/a` to `/h/e`. */
const patterns = [...'abcdefgh'].flatMap((first) => [...'abcde'].map((second) => `/${first}/${second}`));

interface Side extends Answered {
  latency: number[];
  detail: Detail;
}

const nobody = (): Side => ({ requests: 0, errors: 0, clientErrors: 0, latency: emptyLatency(), detail: noDetail() });

function count(side: Side, unit: Unit, failed: boolean, tookMs: number): void {
  const latency = latencyIndexOf(tookMs);
  side.requests++;
  side.latency[latency]!++;
  if (failed) side.errors++;
  addToDetail(side.detail, unit, failed ? 'error' : 'ok', latency);
}

const tookMs = ({ medianMs = 20, tail = 5 }: Behaviour, random: Random): number =>
  medianMs * Math.exp((Math.log(tail) / 1.645) * normal(random));

/** Of the requests before the rollout. */
function latencyOf(stable: Behaviour, random: Random): number[] {
  const latency = emptyLatency();
  for (let n = 0; n < 200; n++) latency[latencyIndexOf(tookMs(stable, random))]!++;
  return latency;
}

/** One rollout of one step. It warms up as long as the policy says. */
export function runRollout(world: World, seed: number): Ended {
  const random = randomFrom(seed * 2_654_435_761);
  const policy = { ...environmentDefaults.canary, ...world.policy };
  const { share, visitors, instances = 1, windows = 30, looks = 1 } = world;
  const offset = Math.floor(random() * buckets);
  const limit = Math.round(share * buckets);
  const isCanary = (bucket: number) => (bucket + offset) % buckets < limit;
  const people = visitors === null ? [] : Array.from({ length: visitors }, () => Math.floor(random() * buckets));
  // What makes a visitor fail is the visitor, not the side, as far as both sides have as many.
  const luck = people.map(() => random());
  const warmWindows = Math.ceil(policy.warmup_s / 10);
  const measured = new Measured(latencyOf(world.stable, random));
  let replaced: string | null = null;
  let slowUntil = -1;
  for (let w = 0; w < windows; w++) {
    const sides = { canary: nobody(), stable: nobody() };
    const blip = world.blips !== undefined && random() < 0.1 ? world.blips : 0;
    if (world.slowPhases !== undefined && random() < 0.1) slowUntil = w + 3;
    const slower = w < slowUntil ? world.slowPhases! : 1;
    const requests = poisson(random, world.perSecond * 10);
    const lookEvery = Math.ceil(requests / looks);
    for (let n = 0; n < requests; n++) {
      if (n > 0 && n % lookEvery === 0) {
        const soFar = measured.copy();
        soFar.add({ at: w * 10_000, ...sides }, policy, w >= warmWindows);
        if (judge(soFar, policy, 1, replaced).verdict === 'bad')
          return { verdict: 'bad', afterWindows: w + 1, requests: soFar.canary.requests, replaced: replaced !== null };
      }
      const person = visitors === null ? -1 : Math.floor(random() * visitors);
      const bucket = person === -1 ? Math.floor(random() * buckets) : people[person]!;
      const name = isCanary(bucket) ? 'canary' : 'stable';
      const behaviour = world[name];
      const instance = Math.floor(random() * instances);
      const isCheckout = world.checkout !== undefined && random() < world.checkout;
      const path = isCheckout ? patterns.length : Math.floor(random() * patterns.length);
      const id = `${name}${instance}${replaced !== null && replaced === `${name}${instance}` ? 'new' : ''}`;
      const isBadInstance = behaviour.badInstance === true && instance === 0 && !id.endsWith('new');
      const failed =
        random() < Math.max(blip, behaviour.errorRate ?? 0) ||
        (person !== -1 && luck[person]! < (behaviour.failingVisitors ?? 0)) ||
        (isBadInstance && random() < 0.5) ||
        path < (behaviour.deadPaths ?? 0) ||
        (isCheckout && behaviour.deadCheckout === true);
      const cold = w < 6 && name === 'canary' ? (world.canary.cold ?? 1) : 1;
      const unit = { bucket, pattern: patterns[path] ?? '/checkout/*', instance: id };
      count(sides[name], unit, failed, tookMs(behaviour, random) * cold * slower);
    }
    measured.add({ at: w * 10_000, ...sides }, policy, w >= warmWindows);
    const analysis = judge(measured, policy, 1, replaced);
    if (analysis.verdict === 'bad') {
      return { verdict: 'bad', afterWindows: w + 1, requests: measured.canary.requests, replaced: replaced !== null };
    }
    if (analysis.outlier !== null) replaced = analysis.outlier;
  }
  const { verdict } = judge(measured, policy, 1, replaced);
  return { verdict, afterWindows: windows, requests: measured.canary.requests, replaced: replaced !== null };
}
