// Totals per revision since this process started, from what its routers measured. A router reports each bucket as an
// absolute count, possibly several times. Its latest report of a bucket replaces earlier ones; once a bucket can no
// longer change, its counts are added to the settled sum.
import { revisionId } from '../contract/references.ts';
import { latencyBoundsMs } from '../traffic/latency.ts';
import { bucketMs, type Measurement } from '../traffic/measurements.ts';

/** A bucket gets its last report within this time. */
const settledMs = 3 * 60_000;
/** A revision without traffic is shown for this long after its last request. */
const forgottenMs = 5 * 60_000;

interface RequestCounts {
  requests: number;
  errors: number;
  /** Requests per interval of `latencyBoundsMs`, and those above the last bound. */
  latency: number[];
}

export interface RevisionTotal extends RequestCounts {
  labels: { project: string; environment: string; revision: string };
}

interface RevisionCounts {
  labels: RevisionTotal['labels'];
  settled: RequestCounts;
  /** By router and start of the bucket. */
  open: Map<string, RequestCounts & { at: number }>;
  lastAt: number;
}

const noCounts = (): RequestCounts => ({
  requests: 0,
  errors: 0,
  latency: new Array(latencyBoundsMs.length + 1).fill(0),
});

function add(to: RequestCounts, more: RequestCounts): void {
  to.requests += more.requests;
  to.errors += more.errors;
  for (const [index, count] of more.latency.entries()) to.latency[index]! += count;
}

export const revisionKey = (project: string, environment: string, revision: number): string =>
  `${project} ${environment} ${revision}`;

export class RevisionTotals {
  readonly #revisions = new Map<string, RevisionCounts>();

  note(router: string, measurements: Measurement[]): void {
    for (const { project, environment, revision, at, requests, errors, latency } of measurements) {
      const key = revisionKey(project, environment, revision);
      let counts = this.#revisions.get(key);
      if (!counts) {
        const labels = { project, environment, revision: revisionId(revision) };
        counts = { labels, settled: noCounts(), open: new Map(), lastAt: at };
        this.#revisions.set(key, counts);
      }
      counts.open.set(`${router} ${at}`, { at, requests, errors, latency });
      counts.lastAt = Math.max(counts.lastAt, at);
      settle(counts);
    }
  }

  /** Drops revisions that get no traffic any more. `routed` holds the keys of those that do. */
  forgetUnrouted(routed: ReadonlySet<string>, nowMs: number): void {
    for (const [key, { lastAt }] of this.#revisions) {
      if (!routed.has(key) && lastAt + bucketMs + forgottenMs < nowMs) this.#revisions.delete(key);
    }
  }

  list(): RevisionTotal[] {
    return [...this.#revisions.values()].map(({ labels, settled, open }) => {
      const total = noCounts();
      for (const counts of [settled, ...open.values()]) add(total, counts);
      return { labels, ...total };
    });
  }
}

function settle({ settled, open, lastAt }: RevisionCounts): void {
  for (const [key, counts] of open) {
    if (counts.at > lastAt - settledMs) continue;
    add(settled, counts);
    open.delete(key);
  }
}
