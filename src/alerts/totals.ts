// Counters for Prometheus, from what this process's router measured. Measurements come as absolute numbers per bucket,
// perhaps several times: the latest of each bucket counts, and buckets that no longer change are added up for good.
import { revisionId } from '../contract/revision-id.ts';
import { bucketMs, latencyBoundsMs, type Measurement } from '../traffic/measure/measurements.ts';
import type { Figure, FigureSample } from './exposition.ts';

/** A bucket gets its last count within this time. */
const settledMs = 3 * 60_000;
/** A revision that is no longer routed to is shown for this long after its last request. */
const forgottenMs = 5 * 60_000;

/** Of the router's bounds: enough for a quantile, and few enough for many revisions. */
const shownBoundsMs = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];

interface Counts {
  requests: number;
  errors: number;
  latency: number[];
}

interface OfRevision {
  labels: { project: string; environment: string; revision: string };
  settled: Counts;
  open: Map<number, Counts>;
  lastAt: number;
}

const nothing = (): Counts => ({ requests: 0, errors: 0, latency: new Array(latencyBoundsMs.length + 1).fill(0) });

function add(to: Counts, more: Counts): void {
  to.requests += more.requests;
  to.errors += more.errors;
  for (const [index, count] of more.latency.entries()) to.latency[index]! += count;
}

export const revisionKey = (project: string, environment: string, revision: number): string =>
  `${project} ${environment} ${revision}`;

export class Totals {
  readonly #revisions = new Map<string, OfRevision>();

  note(measurements: Measurement[]): void {
    for (const { project, environment, revision, at, requests, errors, latency } of measurements) {
      const key = revisionKey(project, environment, revision);
      let of = this.#revisions.get(key);
      if (!of) {
        const labels = { project, environment, revision: revisionId(revision) };
        of = { labels, settled: nothing(), open: new Map(), lastAt: at };
        this.#revisions.set(key, of);
      }
      of.open.set(at, { requests, errors, latency });
      of.lastAt = Math.max(of.lastAt, at);
      for (const [start, counts] of of.open) {
        if (start > of.lastAt - settledMs) continue;
        add(of.settled, counts);
        of.open.delete(start);
      }
    }
  }

  /** Forgets revisions that are gone; null: nobody knows which are. */
  figures(routed: ReadonlySet<string> | null, nowMs: number): Figure[] {
    const requests: FigureSample[] = [];
    const errors: FigureSample[] = [];
    const latency: FigureSample[] = [];
    for (const [key, of] of this.#revisions) {
      if (routed?.has(key) === false && of.lastAt + bucketMs + forgottenMs < nowMs) {
        this.#revisions.delete(key);
        continue;
      }
      const total = nothing();
      for (const counts of [of.settled, ...of.open.values()]) add(total, counts);
      requests.push({ labels: of.labels, value: total.requests });
      errors.push({ labels: of.labels, value: total.errors });
      latency.push(...histogram(of.labels, total.latency));
    }
    const ofRouter = 'by the router of this process, by revision';
    return [
      { name: 'sluice_requests_total', type: 'counter', help: `Requests answered ${ofRouter}.`, samples: requests },
      {
        name: 'sluice_request_errors_total',
        type: 'counter',
        help: `Answers of 500 or above, or none at all, given ${ofRouter}.`,
        samples: errors,
      },
      {
        name: 'sluice_request_duration_seconds',
        type: 'histogram',
        help: `Time to the head of the answer, measured ${ofRouter}.`,
        samples: latency,
      },
    ];
  }
}

function histogram(labels: Record<string, string>, latency: number[]): FigureSample[] {
  const samples: FigureSample[] = [];
  let seen = 0;
  for (const [index, count] of latency.entries()) {
    seen += count;
    const bound = latencyBoundsMs[index];
    if (bound === undefined || !shownBoundsMs.includes(bound)) continue;
    samples.push({ suffix: '_bucket', labels: { ...labels, le: String(bound / 1000) }, value: seen });
  }
  samples.push({ suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: seen });
  samples.push({ suffix: '_count', labels, value: seen });
  return samples;
}
