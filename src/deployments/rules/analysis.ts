// Whether a canary is good: what the router measured of it, compared with the limits and with the stable revision. The
// verdict, the sentence that explains it and the numbers all come from here. No I/O. How much the measurements prove is
// in evidence.ts.
import type { CanaryPolicy } from '../../contract/environments.ts';
import { latencyBoundsMs, quantileMs } from '../../traffic/latency.ts';
import { type Answered, type Detail, routeCount } from '../../traffic/request-detail.ts';
import {
  addRatios,
  type Count,
  Evidence,
  type GroupedCount,
  type LogRatios,
  logMean,
  logOddsAbove,
  noRatios,
  probablyWithin,
  rateOf,
  ratiosOf,
  sumOf,
} from './evidence.ts';

/** A canary no worse than stable may be undone in so many of all rollouts. */
const undoneWrongly = 0.01;
/** How sure it must be that a canary is within the limits for it to be good. */
const sureEnough = 0.8;
/** What counts as worse than stable where the limit is not exceeded: twice as many, and a percentage point more. */
const worseRate = { times: 2, more: 0.01 };
/** The same for requests to one kind of path, which are fewer. */
const worseRoute = { times: 2, more: 0.1 };
/** The same for the p95 where there is no limit: a third longer, and ten milliseconds more. */
const worseP95 = { times: 4 / 3, moreMs: 10 };
/** So many visitors must be affected: one or two may be to blame for their errors themselves. */
const fewestUnits = 3;
/** Latency is worse only if it still is in the latest windows: it may have recovered. */
const recentWindows = 6;
/** Without requests to stable there is no telling what it would do; above this rate a canary is broken in any case. */
const brokenRate = 0.5;
/** Before stable has had so many requests, it is not known what is slow. */
const enoughForP95 = 20;

/** What both sides answered in the same ten seconds. */
export interface Window {
  /** When they begin. */
  at: number;
  stable: Answered;
  canary: Answered;
}

/** Requests that a router has sent to an instance and that have no answer yet, by how long they have been waiting. */
export interface UnderWay {
  stable: readonly number[];
  canary: readonly number[];
}

export const nothingAnswered = (): Answered => ({ requests: 0, errors: 0, clientErrors: 0, latency: [] });

interface RouteEvidence {
  canary: Count;
  stable: Count;
  ratios: LogRatios;
  /** Groups of visitors that saw one fail on the canary, a bit for each. */
  failing: [number, number];
  example: string | null;
}

/** The canary without one of its instances. */
interface WithoutInstance {
  canary: Count;
  ratios: LogRatios;
}

/** What was measured of both sides since a step began, window by window. */
export class Measured {
  /** How long requests to stable took before the step began. */
  readonly #before: readonly number[];
  stable = nothingAnswered();
  canary = nothingAnswered();
  failed = new Evidence();
  refused = new Evidence();
  slow = new Evidence();
  routes = new Map<number, RouteEvidence>();
  without = new Map<string, WithoutInstance>();
  /** Buckets of visitors that saw a failure on the canary, as many as matter. */
  failingUnits = new Set<number>();
  /** Of the latest windows in which latency counts. */
  recent: { stable: readonly number[]; canary: readonly number[] }[] = [];
  underWay: UnderWay = { stable: [], canary: [] };

  constructor(before: readonly number[] = []) {
    this.#before = before;
  }

  /** In the order of time. */
  add(window: Window, policy: Pick<CanaryPolicy, 'max_p95_ms'>, latencyCounts: boolean): void {
    const { stable, canary } = window;
    const failed = { canary: failuresOf(canary), stable: failuresOf(stable) };
    this.#addWithoutInstances(window, failed);
    this.failed.add(failed.canary, failed.stable);
    this.refused.add(refusalsOf(canary), refusalsOf(stable));
    this.#addRoutes(window);
    for (const unit of canary.detail?.failing ?? [])
      if (this.failingUnits.size < fewestUnits) this.failingUnits.add(unit);
    if (latencyCounts) {
      const limit = this.#slowFrom(policy);
      if (limit !== null) this.slow.add(slowerThan(canary, limit), slowerThan(stable, limit));
      this.recent = [...this.recent, { stable: stable.latency, canary: canary.latency }].slice(-recentWindows);
    }
    this.stable = addAnswered(this.stable, stable);
    this.canary = addAnswered(this.canary, canary);
  }

  /** The latency bound above which a request is slow: the limit, or what stable's p95 was before this window; null: unknown. */
  #slowFrom({ max_p95_ms }: Pick<CanaryPolicy, 'max_p95_ms'>): number | null {
    if (max_p95_ms !== null) return boundFrom(max_p95_ms);
    const known = addLatency(this.#before, this.stable.latency);
    const requests = known.reduce((sum, one) => sum + one, 0);
    return requests < enoughForP95 ? null : boundFrom(quantileMs(known, 0.95)!);
  }

  #addRoutes({ stable, canary }: Window): void {
    for (let route = 0; route < routeCount; route++) {
      const [ours, theirs] = [canary.detail?.routes[route], stable.detail?.routes[route]];
      if (!ours && !theirs) continue;
      const counts = {
        canary: { of: ours?.requests ?? 0, bad: ours?.failed ?? 0 },
        stable: { of: theirs?.requests ?? 0, bad: theirs?.failed ?? 0 },
      };
      const before = this.routes.get(route);
      this.routes.set(route, {
        canary: sumOf(before?.canary ?? nothing, counts.canary),
        stable: sumOf(before?.stable ?? nothing, counts.stable),
        ratios: addRatios(before?.ratios ?? noRatios(), ratiosOf(counts.canary, counts.stable)),
        failing: [
          (before?.failing[0] ?? 0) | (ours?.groups[0] ?? 0),
          (before?.failing[1] ?? 0) | (ours?.groups[1] ?? 0),
        ],
        example: before?.example ?? ours?.example ?? null,
      });
    }
  }

  #addWithoutInstances({ canary }: Window, failed: { canary: Count; stable: Count }): void {
    const instances = canary.detail?.instances ?? {};
    for (const id of Object.keys(instances)) {
      // A request that no instance took is the fault of all of them.
      if (id === '') continue;
      if (!this.without.has(id)) this.without.set(id, { canary: this.failed.canary, ratios: this.failed.ratios });
    }
    for (const [id, { canary: before, ratios }] of this.without) {
      const own = instances[id] ?? { requests: 0, failed: 0 };
      const others = { of: failed.canary.of - own.requests, bad: Math.max(0, failed.canary.bad - own.failed) };
      this.without.set(id, {
        canary: sumOf(before, others),
        ratios: addRatios(ratios, ratiosOf(clamped(others), failed.stable)),
      });
    }
  }

  copy(): Measured {
    const copy = new Measured(this.#before);
    return Object.assign(copy, this, {
      failed: this.failed.copy(),
      refused: this.refused.copy(),
      slow: this.slow.copy(),
      routes: new Map(this.routes),
      without: new Map(this.without),
      failingUnits: new Set(this.failingUnits),
    });
  }
}

export interface Analysis {
  verdict: 'good' | 'bad' | 'inconclusive';
  /** For people: a sentence with the numbers. */
  reason: string;
  evidence: {
    /** How many to one the requests speak for a canary that is worse by an amount that matters. */
    errors: number;
    latency: number;
    client_errors: number;
    /** Odds from which it is undone. */
    needed: number;
  };
  /** Stable has had enough requests to compare with, and nothing proves that it does better. */
  isNoWorse: boolean;
  /** An instance of the canary that has most of the errors, while the others are no worse than stable. */
  outlier: string | null;
}

/**
 * `steps`: how many of them the rollout has; each is judged by its own requests. `replaced`: an instance of the canary whose
 * errors do not count any more, because it was replaced.
 */
export function judge(
  measured: Measured,
  policy: CanaryPolicy,
  steps: number,
  replaced: string | null = null,
): Analysis {
  const overdue = overdueOf(measured);
  const failed = judgeFailures(measured, policy, overdue, replaced);
  const latency = judgeLatency(measured, policy);
  const refused = judgeRefusals(measured, policy);
  const judged = policy.max_client_error_rate === null ? [failed, latency] : [failed, latency, refused];
  const needed = (judged.length * Math.max(1, steps)) / undoneWrongly;
  const isBad = ({ logOdds, isWorse }: Finding): boolean => isWorse && logOdds >= Math.log(needed);
  const evidence = {
    errors: shown(failed),
    latency: shown(latency),
    client_errors: shown(refused),
    needed,
  };
  const result = (verdict: Analysis['verdict'], reason: string, outlier: string | null = null): Analysis => ({
    verdict,
    reason,
    evidence,
    isNoWorse:
      measured.stable.requests >= Math.max(1, policy.min_requests) && !isProvedWorse(measured, replaced, needed),
    outlier,
  });
  const bad = judged.find(isBad);
  if (bad === failed && replaced === null) {
    const outlier = outlierOf(measured, policy, (finding) => isBad(finding));
    if (outlier !== null) return result('inconclusive', outlierSentence(measured, outlier), outlier);
  }
  if (bad) return result('bad', `The canary is worse: ${bad.numbers}.`);
  // What is not judged is told.
  const remark = isBad(refused) ? ` More of its answers are 4xx: ${refused.numbers}.` : '';
  const enough = measured.canary.requests >= Math.max(1, policy.min_requests);
  const waiting = overdue.canary.bad > 0 ? failed : undefined;
  const doubtful = enough ? (waiting ?? judged.find(({ isWithin }) => !isWithin())) : undefined;
  if (enough && !doubtful) {
    const numbers = [failed.numbers, ...(latency.numbers === '' ? [] : [latency.numbers])].join('; ');
    return result('good', `The canary is good: ${numbers}.${remark}`);
  }
  const numbers = (doubtful ?? failed).numbers;
  return result('inconclusive', `Too few requests to tell: ${numbers}.${remark}`);
}

/**
 * Whether requests prove that the canary fails more often or is slower, by however little, and whichever single instance of it
 * is left out.
 */
function isProvedWorse({ failed, slow, without }: Measured, replaced: string | null, needed: number): boolean {
  const designEffect = failed.designEffect();
  const others = without.size < 2 ? [] : [...without].filter(([id]) => replaced === null || id === replaced);
  const odds = others.filter(([, { canary }]) => canary.of > 0).map(([, { ratios }]) => logMean(ratios) / designEffect);
  return Math.max(Math.min(failed.logOdds(designEffect), ...odds), slow.logOdds()) >= Math.log(needed);
}

const isWorseP95 = (ours: number, theirs: number): boolean =>
  ours >= worseP95.times * theirs && ours - theirs >= worseP95.moreMs;

const p95Of = (recent: Measured['recent'], side: 'stable' | 'canary'): number | null =>
  quantileMs(recent.map((window) => window[side]).reduce(addLatency, []), 0.95);

/** Whether some request of the canary failed, and none of stable's. */
export function failedAlone({ failed, ...measured }: Measured): boolean {
  const overdue = overdueOf(measured);
  return failed.canary.bad + overdue.canary.bad > 0 && failed.stable.bad + overdue.stable.bad === 0;
}

interface Finding {
  logOdds: number;
  /** Beyond the limit, or so much worse than stable that it matters. */
  isWorse: boolean;
  /** It is sure enough that it is not beyond the limit. */
  isWithin(): boolean;
  numbers: string;
}

const nothing: Count = { of: 0, bad: 0 };
const clamped = ({ of, bad }: Count): Count => ({ of, bad: Math.min(of, bad) });

function judgeFailures(
  measured: Measured,
  policy: CanaryPolicy,
  overdue: { canary: Count; stable: Count },
  leftOut: string | null,
): Finding {
  const { failed, stable } = measured;
  const without = leftOut === null ? undefined : measured.without.get(leftOut);
  const answered = clamped(without?.canary ?? failed.canary);
  const canary = { of: answered.of + overdue.canary.bad, bad: answered.bad + overdue.canary.bad };
  const theirs = { of: failed.stable.of + overdue.stable.bad, bad: failed.stable.bad + overdue.stable.bad };
  const designEffect = failed.designEffect();
  const ratios = addRatios(without?.ratios ?? failed.ratios, ratiosOf(overdue.canary, overdue.stable));
  const whole = logMean(ratios) / designEffect;
  const isSpread = (canary.bad > 0 && overdue.canary.bad >= fewestUnits) || isOfSeveral(measured);
  const isWorse = isSpread && isWorseRate(canary, theirs, policy.max_error_rate, worseRate);
  const route = leftOut === null ? worstRoute(measured, designEffect) : null;
  // A mean of odds is valid as each of them is: either may be enough.
  const joint = measured.routes.size === 0 ? whole : logMean([isWorse ? whole : 0, route?.logOdds ?? 0]);
  const alone =
    stable.requests === 0 && isSpread ? logOddsAbove(canary, Math.max(brokenRate, policy.max_error_rate)) : null;
  const numbers = numbersOfFailures(
    canary,
    theirs,
    overdue.canary.bad,
    route && (!isWorse || explains(route.evidence, canary)) ? route.evidence : null,
  );
  return {
    logOdds: Math.max(joint, alone ?? Number.NEGATIVE_INFINITY),
    isWorse: isWorse || route !== null || alone !== null,
    isWithin: () => isWithinRate(canary, theirs, policy.max_error_rate, designEffect),
    numbers,
  };
}

/** Errors of one or two visitors may be their own. */
const isOfSeveral = ({ canary, failed, failingUnits }: Measured): boolean =>
  (canary.detail ? failingUnits.size : failed.canary.bad) >= fewestUnits;

/** The kind of path that speaks most against the canary, with the mean of all kinds; null: none is worse. */
function worstRoute({ routes }: Measured, designEffect: number): { logOdds: number; evidence: RouteEvidence } | null {
  let worst: { logOdds: number; evidence: RouteEvidence } | null = null;
  const all = new Array<number>(routeCount).fill(0);
  for (const [route, evidence] of routes) {
    const units = bitsIn(evidence.failing);
    if (units < fewestUnits || !isWorseRate(evidence.canary, evidence.stable, null, worseRoute)) continue;
    // No more failures count than groups of visitors that saw one.
    const logOdds = logMean(evidence.ratios) / Math.max(designEffect, evidence.canary.bad / units);
    all[route] = logOdds;
    if (worst === null || logOdds > worst.logOdds) worst = { logOdds, evidence };
  }
  return worst && { logOdds: logMean(all), evidence: worst.evidence };
}

function judgeRefusals({ refused, canary, stable }: Measured, { max_client_error_rate: limit }: CanaryPolicy): Finding {
  const designEffect = refused.designEffect();
  const alone =
    stable.requests === 0 && limit !== null ? logOddsAbove(refused.canary, Math.max(brokenRate, limit)) : null;
  const matters = isWorseRate(refused.canary, refused.stable, limit, worseRate);
  return {
    logOdds: alone ?? refused.logOdds(designEffect),
    isWorse: canary.requests > 0 && matters,
    isWithin: () => isWithinRate(refused.canary, refused.stable, limit, designEffect),
    numbers: `${counted(refused.canary, 'were answered with 4xx')}; of the stable revision ${counted(refused.stable, 'were answered with 4xx')}`,
  };
}

function isWorseRate(
  canary: Count,
  stable: Count,
  limit: number | null,
  { times, more }: { times: number; more: number },
) {
  const [ours, theirs] = [rateOf(canary), rateOf(stable)];
  return (limit !== null && ours > limit) || (stable.of > 0 && ours >= times * theirs && ours - theirs >= more);
}

/** With as many requests as the errors are worth that do not cluster. */
function isWithinRate(canary: Count, stable: Count, limit: number | null, designEffect: number): boolean {
  const tolerated = Math.max(limit ?? 0, worseRate.times * rateOf(stable));
  const worth = { of: canary.of / designEffect, bad: canary.bad / designEffect };
  return probablyWithin(worth, tolerated) >= sureEnough;
}

function judgeLatency({ slow, recent }: Measured, policy: CanaryPolicy): Finding {
  const limit = policy.max_p95_ms;
  const [ours, theirs] = [p95Of(recent, 'canary'), p95Of(recent, 'stable')];
  if (ours === null) return { logOdds: 0, isWorse: false, isWithin: () => true, numbers: '' };
  const isWorse = limit === null ? theirs !== null && isWorseP95(ours, theirs) : ours > limit;
  const logOdds = slow.stable.of === 0 && limit !== null ? logOddsAbove(slow.canary, brokenRate) : slow.logOdds();
  const ofStable = theirs === null ? '' : `, the stable revision’s ${milliseconds(theirs)}`;
  const tolerated = !isWorse && theirs !== null && ours >= worseP95.times * theirs && ours - theirs >= 1;
  const how = limit === null ? 'less than 10 ms more is tolerated' : `up to ${limit} ms are allowed`;
  return {
    logOdds,
    isWorse,
    isWithin: () => !isWorse,
    numbers: `its p95 is ${milliseconds(ours)}${ofStable}${tolerated ? ` (${how})` : ''}`,
  };
}

/** Requests that wait for an answer longer than those of stable do, among all that were sent. */
function overdueOf({ stable, canary, underWay }: Pick<Measured, 'stable' | 'canary' | 'underWay'>) {
  // Routers report those that have waited for two seconds; 99 of 100 requests of stable took no longer than this.
  const from = boundFrom(quantileMs(stable.latency, 0.99) ?? 0) + 1;
  const count = (waiting: readonly number[]) => waiting.slice(from).reduce((sum, one) => sum + one, 0);
  const of = ({ requests }: Answered, waiting: readonly number[]): Count => {
    const bad = count(waiting);
    return bad === 0 && count(underWay.canary) + count(underWay.stable) === 0 ? nothing : { of: requests + bad, bad };
  };
  return { canary: of(canary, underWay.canary), stable: of(stable, underWay.stable) };
}

/** The instance without which the canary would not be bad; null: there is none, or it is the only one. */
function outlierOf(measured: Measured, policy: CanaryPolicy, isBad: (finding: Finding) => boolean): string | null {
  if (measured.without.size < 2) return null;
  for (const [id, { canary }] of measured.without) {
    if (canary.of === 0) continue;
    const finding = judgeFailures(measured, policy, { canary: nothing, stable: nothing }, id);
    if (!isBad(finding)) return id;
  }
  return null;
}

function outlierSentence({ failed, without }: Measured, outlier: string): string {
  const others = without.get(outlier)!.canary;
  const own = { of: failed.canary.of - others.of, bad: failed.canary.bad - others.bad };
  return `One instance of the canary has most of its errors: ${counted(own, 'failed')}, at its other instances ${counted(others, 'failed')}.`;
}

const errorsIn = ({ requests, errors, detail }: Answered): number =>
  Math.min(requests, errors + (detail?.abandoned ?? 0));

/** A response that breaks off counts as an error but not as another request, so errors can exceed requests. */
function failuresOf(side: Answered): GroupedCount {
  return {
    of: side.requests,
    bad: errorsIn(side),
    ...groupsOf(side.detail, ({ requests, failed }) => ({ of: requests, bad: Math.min(requests, failed) })),
  };
}

function refusalsOf({ requests, clientErrors, detail }: Answered): GroupedCount {
  return {
    of: requests,
    bad: clientErrors,
    ...groupsOf(detail, (group) => ({ of: group.requests, bad: group.clientErrors })),
  };
}

function slowerThan({ latency, detail }: Answered, bound: number): GroupedCount {
  const count = (histogram: readonly number[]): Count => {
    const of = histogram.reduce((sum, one) => sum + one, 0);
    return { of, bad: histogram.slice(bound + 1).reduce((sum, one) => sum + one, 0) };
  };
  return { ...count(latency), ...groupsOf(detail, (group) => count(group.latency)) };
}

function groupsOf(
  detail: Detail | undefined,
  count: (group: Detail['groups'][number]) => Count,
): Pick<GroupedCount, 'groups'> {
  if (!detail) return {};
  return { groups: new Map(Object.entries(detail.groups).map(([group, counts]) => [Number(group), count(counts)])) };
}

/** The first bound that is not below this time. */
const boundFrom = (ms: number): number => {
  const index = latencyBoundsMs.findIndex((bound) => bound >= ms);
  return index === -1 ? latencyBoundsMs.length - 1 : index;
};

const addLatency = (a: readonly number[], b: readonly number[]): number[] =>
  Array.from({ length: Math.max(a.length, b.length) }, (_, i) => (a[i] ?? 0) + (b[i] ?? 0));

/** Of the details only that there are some. */
const addAnswered = (a: Answered, b: Answered): Answered => ({
  requests: a.requests + b.requests,
  errors: a.errors + b.errors,
  clientErrors: a.clientErrors + b.clientErrors,
  latency: addLatency(a.latency, b.latency),
  ...((a.detail ?? b.detail) && { detail: a.detail ?? b.detail }),
});

function bitsIn(words: readonly number[]): number {
  let count = 0;
  for (let word of words) for (; word !== 0; word &= word - 1) count++;
  return count;
}

const shown = ({ logOdds, isWorse }: Finding): number => {
  const odds = Math.exp(Math.min(logOdds, Math.log(1e9)));
  return Math.round((isWorse ? odds : Math.min(odds, 1)) * 100) / 100;
};

/** Most failures were for this kind of path, and most requests were not. */
const explains = ({ canary: own }: RouteEvidence, canary: Count): boolean =>
  own.bad >= 0.8 * canary.bad && own.of <= 0.5 * canary.of;

function numbersOfFailures(canary: Count, stable: Count, overdue: number, route: RouteEvidence | null): string {
  const open = overdue === 0 ? '' : `, ${grouped.format(overdue)} of them still without an answer`;
  const where = route && `, ${grouped.format(route.canary.bad)} of them for ${route.example ?? 'one kind of path'}`;
  return `${counted(canary, 'failed')}${where ?? open}; of the stable revision ${counted(stable, 'failed')}`;
}

const milliseconds = (ms: number): string => `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;

/** One for all: `toLocaleString` makes a new one each time. */
const grouped = new Intl.NumberFormat('en');

const counted = (count: Count, verb: string): string => {
  if (count.of === 0) return 'there was no request';
  return `${grouped.format(count.bad)} of ${grouped.format(count.of)} requests ${verb} (${percent(rateOf(count))})`;
};

const percent = (rate: number): string => `${Math.round(rate * 1000) / 10} %`;
