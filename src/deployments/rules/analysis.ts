// Whether a canary is good: what the router measured of it, compared with the limits and with the stable revision. No
// I/O.
//
// The evidence is a mixture of likelihoods over all rates (Jeffreys' prior), divided by the greatest likelihood that
// "it is no worse" allows. If the canary is no worse, odds of n to 1 are ever reached in at most one of n rollouts,
// however often it is evaluated. Why this test: docs/decisions/canary-analysis.md.
import type { CanaryPolicy } from '../../contract/environments.ts';
import { latencyBoundsMs, quantileMs } from '../../traffic/measurements.ts';

/** What one revision answered. */
export interface Answered {
  requests: number;
  errors: number;
  /** Answers with a status from 400 to 499. */
  clientErrors: number;
  /** Requests per latency bucket; one entry more than there are bounds. */
  latency: readonly number[];
}

export interface Comparison {
  stable: Answered;
  canary: Answered;
}

export const nothingAnswered: Answered = { requests: 0, errors: 0, clientErrors: 0, latency: [] };

/** A canary no worse than stable may be undone in so many of all rollouts. */
const undoneWrongly = 0.01;
/** How sure it must be that a canary is within the limits for it to be good. */
const sureEnough = 0.8;
/** What counts as worse than stable where the limit is not exceeded: twice as many, and a percentage point more. */
const worseRate = { times: 2, more: 0.01 };
/** The same for the p95 where there is no limit: a third longer, and ten milliseconds more. */
const worseP95 = { times: 4 / 3, moreMs: 10 };

export interface Analysis {
  verdict: 'good' | 'bad' | 'inconclusive';
  /** For people: a sentence with the numbers. */
  reason: string;
  evidence: {
    /** How many to one the requests speak for a canary that is worse, by errors, by latency and by 4xx. */
    errors: number;
    latency: number;
    client_errors: number;
    /** Odds from which it is undone. */
    needed: number;
  };
}

/** `steps`: how many of them the rollout has; each is judged by its own requests. */
export function judge({ stable, canary }: Comparison, policy: CanaryPolicy, steps: number): Analysis {
  const comparable = stable.requests >= Math.max(1, policy.min_requests);
  const errors = judgeRate(errorsOf(canary), errorsOf(stable), policy.max_error_rate, comparable, 'failed');
  const latency = judgeLatency(canary, stable, policy, comparable);
  const clientErrors = judgeRate(
    clientErrorsOf(canary),
    clientErrorsOf(stable),
    policy.max_client_error_rate,
    comparable,
    'were answered with 4xx',
  );
  const judged = policy.max_client_error_rate === null ? [errors, latency] : [errors, latency, clientErrors];
  const needed = (judged.length * Math.max(1, steps)) / undoneWrongly;
  const evidence = {
    errors: shown(errors.odds),
    latency: shown(latency.odds),
    client_errors: shown(clientErrors.odds),
    needed,
  };
  const isBad = ({ odds, isWorse }: Finding): boolean => odds >= needed && isWorse;
  const bad = judged.find(isBad);
  if (bad) return { verdict: 'bad', reason: `The canary is worse: ${bad.numbers}.`, evidence };
  // What is not judged is told.
  const remark = isBad(clientErrors) ? ` More of its answers are 4xx: ${clientErrors.numbers}.` : '';
  const enough = canary.requests >= Math.max(1, policy.min_requests);
  const doubtful = enough ? judged.find(({ isWithin }) => !isWithin()) : undefined;
  if (enough && !doubtful)
    return { verdict: 'good', reason: `The canary is good: ${errors.numbers}.${remark}`, evidence };
  const { numbers } = doubtful ?? errors;
  return { verdict: 'inconclusive', reason: `Too few requests to tell: ${numbers}.${remark}`, evidence };
}

interface Finding {
  odds: number;
  /** Beyond the limit, or so much worse than stable that it matters. */
  isWorse: boolean;
  /** It is sure enough that it is not beyond the limit. */
  isWithin(): boolean;
  numbers: string;
}

/** `limit` null: only compared with the stable revision. */
function judgeRate(canary: Count, stable: Count, limit: number | null, comparable: boolean, verb: string): Finding {
  const [ours, theirs] = [rateOf(canary), rateOf(stable)];
  const matters = ours >= worseRate.times * theirs && ours - theirs >= worseRate.more;
  const tolerated = Math.max(limit ?? 0, worseRate.times * theirs);
  let odds = 0;
  if (comparable) odds = oddsWorse(canary, stable);
  else if (limit !== null) odds = oddsAbove(canary, limit);
  return {
    odds,
    isWorse: (limit !== null && ours > limit) || (comparable && matters),
    isWithin: () => probablyWithin(canary, tolerated) >= sureEnough,
    numbers: `${counted(canary, verb)}; of the stable revision ${counted(stable, verb)}`,
  };
}

function judgeLatency(canary: Answered, stable: Answered, policy: CanaryPolicy, comparable: boolean): Finding {
  const [ours, theirs] = [quantileMs(canary.latency, 0.95) ?? 0, quantileMs(stable.latency, 0.95) ?? 0];
  const limit = policy.max_p95_ms;
  const aboveLimit = limit !== null && ours > limit;
  const matters = limit === null && ours >= worseP95.times * theirs && ours - theirs >= worseP95.moreMs;
  let odds = 0;
  if (comparable) odds = oddsSlower(canary.latency, stable.latency);
  else if (limit !== null) odds = oddsAbove(slowerThanEach(canary.latency)[boundFrom(limit)]!, 0.05);
  const isWorse = aboveLimit || (comparable && matters);
  return {
    odds,
    isWorse,
    isWithin: () => !isWorse,
    numbers: `its p95 is ${Math.round(ours)} ms, the stable revision’s ${Math.round(theirs)} ms`,
  };
}

/** The mean over all bounds of the odds that more of the canary's requests take longer. */
function oddsSlower(canary: readonly number[], stable: readonly number[]): number {
  const [ours, theirs] = [slowerThanEach(canary), slowerThanEach(stable)];
  const odds = latencyBoundsMs.map((_, i) => oddsWorse(ours[i]!, theirs[i]!));
  return odds.reduce((sum, one) => sum + one, 0) / odds.length;
}

/** The first bound that is not below this time. */
const boundFrom = (ms: number): number => {
  const index = latencyBoundsMs.findIndex((bound) => bound >= ms);
  return index === -1 ? latencyBoundsMs.length - 1 : index;
};

/** For each bound, how many requests took longer. */
function slowerThanEach(latency: readonly number[]): Count[] {
  const of = latency.reduce((total, count) => total + count, 0);
  let faster = 0;
  return latencyBoundsMs.map((_, i) => {
    faster += latency[i] ?? 0;
    return { of, bad: of - faster };
  });
}

/** A response that breaks off counts as an error but not as another request, so errors can exceed requests. */
const errorsOf = ({ requests, errors }: Answered): Count => ({ of: requests, bad: Math.min(errors, requests) });

const clientErrorsOf = ({ requests, clientErrors }: Answered): Count => ({ of: requests, bad: clientErrors });

const shown = (odds: number): number => Math.round(Math.min(odds, 1e9) * 100) / 100;

/** One for all: `toLocaleString` makes a new one each time. */
const grouped = new Intl.NumberFormat('en');

const counted = (count: Count, verb: string): string => {
  if (count.of === 0) return 'there was no request';
  return `${grouped.format(count.bad)} of ${grouped.format(count.of)} requests ${verb} (${percent(rateOf(count))})`;
};

const percent = (rate: number): string => `${Math.round(rate * 1000) / 10} %`;

/** Of so many requests, so many were bad. */
interface Count {
  of: number;
  bad: number;
}

const rateOf = ({ of, bad }: Count): number => (of === 0 ? 0 : bad / of);

/** Odds that the first rate is above the second. */
function oddsWorse(canary: Count, stable: Count): number {
  if (stable.of === 0 || rateOf(canary) <= rateOf(stable)) return 0;
  const pooled = { of: canary.of + stable.of, bad: canary.bad + stable.bad };
  return Math.exp(logMixture(canary) + logMixture(stable) - logLikelihood(pooled, rateOf(pooled)));
}

/** Odds that the rate is above this limit. */
function oddsAbove(count: Count, limit: number): number {
  if (rateOf(count) <= limit) return 0;
  return Math.exp(logMixture(count) - logLikelihood(count, limit));
}

/** How probable it is that the rate is within the limit, as far as the counts tell (Jeffreys' prior). */
function probablyWithin({ of, bad }: Count, limit: number): number {
  if (limit >= 1) return 1;
  return limit <= 0 ? 0 : betaBelow(limit, bad + 0.5, of - bad + 0.5);
}

function logMixture({ of, bad }: Count): number {
  return logBeta(bad + 0.5, of - bad + 0.5) - logBeta(0.5, 0.5);
}

function logLikelihood({ of, bad }: Count, rate: number): number {
  const times = (n: number, p: number) => (n === 0 ? 0 : n * Math.log(p));
  return times(bad, rate) + times(of - bad, 1 - rate);
}

const logBeta = (a: number, b: number): number => logGamma(a) + logGamma(b) - logGamma(a + b);

/** Stirling's series, from 10 on; below, by steps of one. */
function logGamma(x: number): number {
  let below = 1;
  let at = x;
  for (; at < 10; at++) below *= at;
  const square = 1 / (at * at);
  const series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / at;
  return (at - 0.5) * Math.log(at) - at + 0.5 * Math.log(2 * Math.PI) + series - Math.log(below);
}

/** The regularized incomplete beta function, by its continued fraction (Lentz' method). */
function betaBelow(x: number, a: number, b: number): number {
  if (x > (a + 1) / (a + b + 2)) return 1 - betaBelow(1 - x, b, a);
  const tiny = 1e-300;
  const kept = (value: number) => (Math.abs(value) < tiny ? tiny : value);
  let c = 1;
  let d = 1 / kept(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m <= 10_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    const before = fraction;
    for (const term of [even, odd]) {
      d = 1 / kept(1 + term * d);
      c = kept(1 + term / c);
      fraction *= d * c;
    }
    if (Math.abs(fraction - before) <= 1e-12 * fraction) break;
  }
  return (Math.exp(a * Math.log(x) + b * Math.log(1 - x) - logBeta(a, b)) * fraction) / a;
}
