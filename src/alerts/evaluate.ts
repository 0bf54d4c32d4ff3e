// When an alert fires and when it is resolved, without I/O. A condition has to hold for `for_s` before the alert fires,
// and to be gone for as long before it is resolved: in between, nothing happens, however often it comes and goes.
import type { AlertMetric } from '../contract/alert-rules.ts';
import type { Tables } from '../db/tables.ts';
import { bucketMs, latencyBoundsMs, quantileMs } from '../traffic/measure/measurements.ts';

export type Rule = Pick<Tables['alert_rule'], 'metric' | 'comparator' | 'threshold' | 'window_s' | 'for_s'>;

/** What was measured in a bucket, or, for buckets that are wholly within the window, in several. */
export interface Sample {
  /** Start of the first bucket. */
  at: number;
  requests: number;
  errors: number;
  latency: readonly number[] | null;
}

/** What is known about the subject of a rule. */
export interface Seen {
  samples: readonly Sample[];
  /** Of the active revision; null: there is none. */
  healthyInstances: number | null;
  /** When its certificate ends; null: there is none. */
  notAfterMs: number | null;
}

export const nothingSeen: Seen = { samples: [], healthyInstances: null, notAfterMs: null };

/** Judged for each revision apart. */
export const perRevision = (metric: AlertMetric): boolean => metric === 'error_rate' || metric === 'p95_ms';

const dayMs = 86_400_000;

/** null: there is none, and so nothing is wrong; undefined: nobody can tell yet. */
export type Value = number | null | undefined;

/** A service that was away has counted nothing: for so long after its start, no requests are no news. */
const graceMs = 60_000;

/** The value that is held against the threshold, by somebody who has been there for `watchedMs`. */
export function measure(rule: Rule, seen: Seen, nowMs: number, watchedMs = Number.POSITIVE_INFINITY): Value {
  const isEarly = watchedMs < Math.min(rule.window_s * 1000, graceMs);
  switch (rule.metric) {
    case 'error_rate':
      return errorRate(rule, seen, nowMs) ?? (isEarly ? undefined : null);
    case 'p95_ms':
      return quantileMs(latencyOf(rule, seen, nowMs), 0.95) ?? (isEarly ? undefined : null);
    case 'request_rate':
      return isEarly ? undefined : requestRate(rule, seen, nowMs);
    case 'healthy_instances':
      return seen.healthyInstances;
    case 'certificate_days_left':
      return seen.notAfterMs === null ? null : Math.floor(((seen.notAfterMs - nowMs) / dayMs) * 100) / 100;
    case 'external':
      return null;
  }
}

function errorRate(rule: Rule, seen: Seen, nowMs: number): number | null {
  const requests = sum(rule, seen, nowMs, (sample) => sample.requests);
  if (requests === 0) return null;
  // An answer that breaks off is an error without being another request.
  return Math.min(1, rounded(sum(rule, seen, nowMs, (sample) => sample.errors) / requests));
}

function requestRate(rule: Rule, seen: Seen, nowMs: number): number | null {
  if (seen.healthyInstances === null) return null;
  return rounded(sum(rule, seen, nowMs, (sample) => sample.requests) / rule.window_s);
}

function latencyOf(rule: Rule, { samples }: Seen, nowMs: number): number[] {
  const fromMs = nowMs - rule.window_s * 1000;
  const total = new Array<number>(latencyBoundsMs.length + 1).fill(0);
  for (const { at, latency } of samples) {
    const share = shareWithin(at, fromMs, nowMs);
    if (share > 0 && latency) for (let i = 0; i < total.length; i++) total[i]! += (latency[i] ?? 0) * share;
  }
  return total;
}

function sum(rule: Rule, { samples }: Seen, nowMs: number, count: (sample: Sample) => number): number {
  const fromMs = nowMs - rule.window_s * 1000;
  return samples.reduce((total, sample) => total + count(sample) * shareWithin(sample.at, fromMs, nowMs), 0);
}

/** How much of a bucket the window covers. Its end reaches into the window for a while after its start has left. */
function shareWithin(at: number, fromMs: number, nowMs: number): number {
  if (at > nowMs) return 0;
  return Math.min(1, Math.max(0, (at + bucketMs - fromMs) / bucketMs));
}

const rounded = (value: number): number => Math.round(value * 1e6) / 1e6;

/** Since when the condition holds, or no longer does. */
export interface Watch {
  holds: boolean;
  since: number;
}

export interface Next {
  /** What to remember; null: nothing. */
  watch: Watch | null;
  act: 'fire' | 'resolve' | null;
}

export function next(before: Watch | null, firing: boolean, value: Value, rule: Rule, nowMs: number): Next {
  if (value === undefined) return { watch: before, act: null };
  const holds = value !== null && (rule.comparator === 'gt' ? value > rule.threshold : value < rule.threshold);
  // A clock that goes back begins the wait anew; it must not make it longer than that.
  const since = before?.holds === holds ? Math.min(before.since, nowMs) : nowMs;
  const waited = nowMs - since >= rule.for_s * 1000;
  if (holds) return { watch: { holds, since }, act: waited && !firing ? 'fire' : null };
  if (!firing || waited) return { watch: null, act: firing ? 'resolve' : null };
  return { watch: { holds, since }, act: null };
}

export const lookEveryMs = 5000;

/**
 * Of a long window, one look changes little and costs much: such a rule has its turn every hundredth of its window,
 * each at another moment.
 */
export function isDue(rule: { id: string; window_s: number }, lastMs: number, nowMs: number): boolean {
  const everyMs = rule.window_s * 10;
  if (everyMs <= lookEveryMs) return true;
  const phase = Number.parseInt(rule.id.slice(-8), 36) % everyMs;
  return Math.floor((lastMs + phase) / everyMs) !== Math.floor((nowMs + phase) / everyMs);
}
