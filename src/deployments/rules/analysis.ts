// Whether a canary is good: what the router measured of it, held against the limits and against the stable revision.
import type { CanaryPolicy } from '../../contract/environments.ts';
import { latencyBoundsMs, quantileMs } from '../../traffic/measure/measurements.ts';
import { type Count, oddsAbove, oddsWorse, probablyWithin, rateOf } from './evidence.ts';

/** What one revision answered. */
export interface Answered {
  requests: number;
  errors: number;
  /** Requests per latency bucket; one entry more than there are bounds. */
  latency: readonly number[];
}

export interface Comparison {
  stable: Answered;
  canary: Answered;
}

export const nothingAnswered: Answered = { requests: 0, errors: 0, latency: [] };

/** A canary no worse than stable may be undone in so many of all rollouts. */
const undoneWrongly = 0.01;
/** Errors and latency are judged separately. */
const tests = 2;
/** How sure it must be that a canary is within the limits for it to be good. */
const sureEnough = 0.8;
/** What counts as worse than stable where the limit is not exceeded: twice as many errors, and a percentage point more. */
const worseErrors = { times: 2, more: 0.01 };
/** The same for the p95 where there is no limit: a third longer, and ten milliseconds more. */
const worseP95 = { times: 4 / 3, moreMs: 10 };

export interface Analysis {
  verdict: 'good' | 'bad' | 'inconclusive';
  /** For people: a sentence with the numbers. */
  reason: string;
  evidence: {
    /** How many to one the requests speak for a canary that is worse, by errors and by latency. */
    errors: number;
    latency: number;
    /** Odds from which it is undone. */
    needed: number;
  };
}

/** `steps`: how many of them the rollout has; each is judged by its own requests. */
export function judge({ stable, canary }: Comparison, policy: CanaryPolicy, steps: number): Analysis {
  const needed = (tests * Math.max(1, steps)) / undoneWrongly;
  const comparable = stable.requests >= Math.max(1, policy.min_requests);
  const errors = judgeErrors(errorsOf(canary), errorsOf(stable), policy, comparable);
  const latency = judgeLatency(canary, stable, policy, comparable);
  const evidence = { errors: shown(errors.odds), latency: shown(latency.odds), needed };
  for (const { odds, isWorse, numbers } of [errors, latency])
    if (odds >= needed && isWorse) return { verdict: 'bad', reason: `The canary is worse: ${numbers}.`, evidence };
  const enough = canary.requests >= Math.max(1, policy.min_requests);
  const tolerated = Math.max(policy.max_error_rate, worseErrors.times * rateOf(errorsOf(stable)));
  if (enough && !latency.isWorse && probablyWithin(errorsOf(canary), tolerated) >= sureEnough)
    return { verdict: 'good', reason: `The canary is good: ${errors.numbers}.`, evidence };
  const numbers = latency.isWorse ? latency.numbers : errors.numbers;
  return { verdict: 'inconclusive', reason: `Too few requests to tell: ${numbers}.`, evidence };
}

interface Finding {
  odds: number;
  /** Beyond the limit, or so much worse than stable that it matters. */
  isWorse: boolean;
  numbers: string;
}

function judgeErrors(canary: Count, stable: Count, policy: CanaryPolicy, comparable: boolean): Finding {
  const [ours, theirs] = [rateOf(canary), rateOf(stable)];
  const matters = ours >= worseErrors.times * theirs && ours - theirs >= worseErrors.more;
  return {
    odds: comparable ? oddsWorse(canary, stable) : oddsAbove(canary, policy.max_error_rate),
    isWorse: ours > policy.max_error_rate || (comparable && matters),
    numbers: `${failed(canary)}; of the stable revision ${failed(stable)}`,
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
  return {
    odds,
    isWorse: aboveLimit || (comparable && matters),
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

const shown = (odds: number): number => Math.round(Math.min(odds, 1e9) * 100) / 100;

const failed = (count: Count): string => {
  if (count.of === 0) return 'there was no request';
  return `${count.bad.toLocaleString('en')} of ${count.of.toLocaleString('en')} requests failed (${percent(rateOf(count))})`;
};

const percent = (rate: number): string => `${Math.round(rate * 1000) / 10} %`;
