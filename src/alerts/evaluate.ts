// When an alert fires and when it is resolved, without I/O. The condition must hold for `for_s` before the alert fires,
// and must be gone for `for_s` before the alert is resolved. A condition that comes and goes faster than that changes
// nothing.
import type { AlertMetric } from '../contract/alert-rules.ts';
import type { Tables } from '../db/tables.ts';
import { latencyBoundsMs, quantileMs } from '../traffic/latency.ts';
import { bucketMs } from '../traffic/measurements.ts';

export type Rule = Pick<Tables['alert_rule'], 'metric' | 'comparator' | 'threshold' | 'window_s' | 'for_s'>;

/** Measurements of one bucket, or the sum of several buckets that are entirely within the window. */
export interface Sample {
  /** Start of the first bucket. */
  at: number;
  requests: number;
  errors: number;
  latency: readonly number[] | null;
}

/** What is known about one subject of a rule. */
export interface Observation {
  samples: readonly Sample[];
  /** Healthy instances of the active revision; null: there is no active revision. */
  healthyInstances: number | null;
  /** Instances that ended by themselves in the window; null: there is no active revision. */
  restarts: number | null;
  /** When the certificate expires; null: there is no certificate. */
  notAfterMs: number | null;
}

export const noObservation: Observation = { samples: [], healthyInstances: null, restarts: null, notAfterMs: null };

/** Whether the metric is evaluated for each revision separately. */
export const perRevision = (metric: AlertMetric): boolean => metric === 'error_rate' || metric === 'p95_ms';

const dayMs = 86_400_000;

/** null: there is no value, so the condition does not hold; undefined: it is too early to know. */
type Value = number | null | undefined;

/** A process that has just started has no measurements yet: for this long, their absence means nothing. */
const graceMs = 60_000;

/** The value to compare with the threshold. `watchedMs`: how long this process has been watching. */
export function measure(rule: Rule, observed: Observation, nowMs: number, watchedMs = Number.POSITIVE_INFINITY): Value {
  const isEarly = watchedMs < Math.min(rule.window_s * 1000, graceMs);
  switch (rule.metric) {
    case 'error_rate':
      return errorRate(rule, observed, nowMs) ?? (isEarly ? undefined : null);
    case 'p95_ms':
      return quantileMs(latencyOf(rule, observed, nowMs), 0.95) ?? (isEarly ? undefined : null);
    case 'request_rate':
      return isEarly ? undefined : requestRate(rule, observed, nowMs);
    case 'healthy_instances':
      return observed.healthyInstances;
    case 'restarts':
      return observed.restarts;
    case 'certificate_days_left':
      return observed.notAfterMs === null ? null : Math.floor(((observed.notAfterMs - nowMs) / dayMs) * 100) / 100;
    case 'external':
      return null;
  }
}

function errorRate(rule: Rule, observed: Observation, nowMs: number): number | null {
  const requests = sum(rule, observed, nowMs, (sample) => sample.requests);
  if (requests === 0) return null;
  // A response that breaks off counts as an error but not as another request, so errors can exceed requests.
  return Math.min(1, rounded(sum(rule, observed, nowMs, (sample) => sample.errors) / requests));
}

function requestRate(rule: Rule, observed: Observation, nowMs: number): number | null {
  if (observed.healthyInstances === null) return null;
  return rounded(sum(rule, observed, nowMs, (sample) => sample.requests) / rule.window_s);
}

function latencyOf(rule: Rule, { samples }: Observation, nowMs: number): number[] {
  const fromMs = nowMs - rule.window_s * 1000;
  const total = new Array<number>(latencyBoundsMs.length + 1).fill(0);
  for (const { at, latency } of samples) {
    const share = shareWithin(at, fromMs, nowMs);
    if (share > 0 && latency) for (let i = 0; i < total.length; i++) total[i]! += (latency[i] ?? 0) * share;
  }
  return total;
}

function sum(rule: Rule, { samples }: Observation, nowMs: number, count: (sample: Sample) => number): number {
  const fromMs = nowMs - rule.window_s * 1000;
  return samples.reduce((total, sample) => total + count(sample) * shareWithin(sample.at, fromMs, nowMs), 0);
}

/** The share of a bucket that the window covers. */
function shareWithin(at: number, fromMs: number, nowMs: number): number {
  if (at > nowMs) return 0;
  return Math.min(1, Math.max(0, (at + bucketMs - fromMs) / bucketMs));
}

const rounded = (value: number): number => Math.round(value * 1e6) / 1e6;

/** Whether the condition holds, and since when. */
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
  // If the clock goes backwards, the wait restarts; it must not become longer than that.
  const since = before?.holds === holds ? Math.min(before.since, nowMs) : nowMs;
  const waited = nowMs - since >= rule.for_s * 1000;
  if (holds) return { watch: { holds, since }, act: waited && !firing ? 'fire' : null };
  if (!firing || waited) return { watch: null, act: firing ? 'resolve' : null };
  return { watch: { holds, since }, act: null };
}

export const evaluateEveryMs = 5000;

/**
 * Evaluating a long window is expensive, and its value changes slowly: such a rule is due once per hundredth of its
 * window. The phase spreads the rules over time.
 */
export function isDue(rule: { id: string; window_s: number }, lastMs: number, nowMs: number): boolean {
  const everyMs = rule.window_s * 10;
  if (everyMs <= evaluateEveryMs) return true;
  const phase = Number.parseInt(rule.id.slice(-8), 36) % everyMs;
  return Math.floor((lastMs + phase) / everyMs) !== Math.floor((nowMs + phase) / everyMs);
}
