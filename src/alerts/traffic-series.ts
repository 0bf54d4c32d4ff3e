// The router's measurements as series for charts: one series per revision, one point per step.
import { ApiError } from '../contract/errors.ts';
import { type Metrics, maxPoints } from '../contract/metrics.ts';
import { revisionId } from '../contract/references.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { isoTime } from '../lib/iso-time.ts';
import { latencyBoundsMs, quantileMs } from '../traffic/latency.ts';
import { bucketMs } from '../traffic/measurements.ts';
import { keptForMs, listTraffic, type TrafficRow } from '../traffic/traffic-queries.ts';

interface Span {
  fromMs: number;
  /** A whole number of steps after `fromMs`. */
  toMs: number;
  stepMs: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const defaultPoints = 120;
const maxSeries = 50;
/** How much one query reads, so that a long span does not block other requests. */
const sliceMs = 6 * hourMs;

export function spanOf(query: { from?: string; to?: string; step_s?: number }, nowMs: number): Span {
  const to = query.to === undefined ? nowMs : Date.parse(query.to);
  const from = query.from === undefined ? to - hourMs : Date.parse(query.from);
  if (!(from >= 0)) throw refused('from', 'must not be before 1970');
  if (!(from < to)) throw refused('from', 'must be before to');
  const defaultStepMs = Math.min(dayMs, Math.ceil((to - from) / defaultPoints / bucketMs) * bucketMs);
  const stepMs = query.step_s === undefined ? defaultStepMs : query.step_s * 1000;
  if (stepMs % bucketMs !== 0) throw refused('step_s', 'must be a multiple of 10');
  const steps = Math.ceil((to - from) / stepMs);
  if (steps > maxPoints) throw refused('step_s', `must give at most ${maxPoints} steps`);
  const toMs = Math.ceil(to / bucketMs) * bucketMs;
  return { fromMs: toMs - steps * stepMs, toMs, stepMs };
}

const refused = (name: string, message: string) =>
  new ApiError('invalid_request', 'The request is not valid.', { details: [{ path: `query.${name}`, message }] });

interface Step {
  requests: number;
  errors: number;
  latency: number[];
}

/** Sums measurements by revision and step. */
class Series {
  readonly #span: Span;
  readonly #nowMs: number;
  readonly #revisions = new Map<number, Map<number, Step>>();

  constructor(span: Span, nowMs: number) {
    this.#span = span;
    this.#nowMs = nowMs;
  }

  add({ revision, at, requests, errors, latency }: TrafficRow): void {
    const steps = this.#revisions.get(revision) ?? new Map<number, Step>();
    this.#revisions.set(revision, steps);
    const index = Math.floor((at - this.#span.fromMs) / this.#span.stepMs);
    const step = steps.get(index) ?? empty();
    steps.set(index, step);
    step.requests += requests;
    step.errors += errors;
    for (const [bucket, count] of latency.entries()) step.latency[bucket]! += count;
  }

  present(): Metrics['series'] {
    const newest = [...this.#revisions].sort(([a], [b]) => b - a).slice(0, maxSeries);
    return newest.map(([revision, steps]) => ({ revision: revisionId(revision), points: this.#points(steps) }));
  }

  /** Shorter than a step for the one that is still going on. */
  #lastedMs(startMs: number): number {
    return Math.min(this.#span.stepMs, Math.max(1000, this.#nowMs - startMs));
  }

  #points(steps: Map<number, Step>) {
    const { fromMs, toMs, stepMs } = this.#span;
    return Array.from({ length: (toMs - fromMs) / stepMs }, (_, index) => {
      const step = steps.get(index);
      const requests = step?.requests ?? 0;
      return {
        at: isoTime(fromMs + index * stepMs),
        requests,
        request_rate: rounded((requests * 1000) / this.#lastedMs(fromMs + index * stepMs)),
        error_rate: requests === 0 ? null : Math.min(1, rounded(step!.errors / requests)),
        p50_ms: step ? quantileMs(step.latency, 0.5) : null,
        p95_ms: step ? quantileMs(step.latency, 0.95) : null,
      };
    });
  }
}

const empty = (): Step => ({ requests: 0, errors: 0, latency: new Array(latencyBoundsMs.length + 1).fill(0) });
const rounded = (value: number): number => Math.round(value * 1e6) / 1e6;

export async function readSeries(
  db: Db,
  of: { projectId: string; environment: string; revision: number | null },
  span: Span,
  clock: Clock,
): Promise<Metrics> {
  const nowMs = clock.now();
  const series = new Series(span, nowMs);
  const lastMs = Math.min(span.toMs, nowMs + bucketMs);
  let fromMs = Math.max(span.fromMs, nowMs - keptForMs - hourMs);
  while (fromMs < lastMs) {
    const toMs = Math.min(fromMs + sliceMs, lastMs);
    for (const row of await listTraffic(db, of, fromMs, toMs)) series.add(row);
    fromMs = toMs;
  }
  return {
    environment: of.environment,
    from: isoTime(span.fromMs),
    to: isoTime(span.toMs),
    step_s: span.stepMs / 1000,
    series: series.present(),
  };
}
