// Whether a canary is good enough: compares what the router measured of it with the limits and the stable revision.
import type { CanaryPolicy } from '../../contract/environments.ts';
import type { Side } from '../../traffic/measure/measurements.ts';

export interface Comparison {
  stable: Side;
  canary: Side;
}

export type Verdict =
  | { kind: 'good' }
  | { kind: 'bad'; reason: string }
  /** Too few requests to tell. */
  | { kind: 'unknown' };

export function judge({ stable, canary }: Comparison, policy: CanaryPolicy): Verdict {
  if (canary.requests < policy.min_requests) {
    // Where the stable revision gets no requests either, waiting would not help.
    return stable.requests < policy.min_requests ? { kind: 'good' } : { kind: 'unknown' };
  }
  const errors = canary.errorRate ?? 0;
  if (errors > policy.max_error_rate && errors > (stable.errorRate ?? 0)) {
    return { kind: 'bad', reason: `error rate ${percent(errors)} is above ${percent(policy.max_error_rate)}` };
  }
  const { max_p95_ms } = policy;
  if (max_p95_ms !== null && canary.p95Ms !== null && canary.p95Ms > max_p95_ms && canary.p95Ms > (stable.p95Ms ?? 0)) {
    return { kind: 'bad', reason: `p95 of ${Math.round(canary.p95Ms)} ms is above ${max_p95_ms} ms` };
  }
  return { kind: 'good' };
}

const percent = (rate: number): string => `${Math.round(rate * 1000) / 10} %`;
