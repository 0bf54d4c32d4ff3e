import type { Db } from '../db/database.ts';
import { keyOf } from '../environments/key.ts';
import { bucketOf, latencyBoundsMs, quantileMs, type Side } from '../traffic/measure/measurements.ts';
import { listTraffic } from '../traffic/queries.ts';
import type { DeploymentRow } from './queries.ts';
import type { Comparison } from './rules/analysis.ts';

interface Counts {
  requests: number;
  errors: number;
  latency: number[];
}

interface Counted {
  stable: Counts;
  canary: Counts;
}

const none: Counts = { requests: 0, errors: 0, latency: [] };

/**
 * What both revisions did since the canary's step began. Routers count in buckets of ten seconds, so what they had
 * counted in the first of them before the step began is taken off: it may be why the canary was paused.
 */
export async function compareTraffic(db: Db, row: DeploymentRow): Promise<Comparison> {
  const { stable, canary } = await countTraffic(db, row, row.step_since ?? row.created_at);
  const before = row.step_baseline === null ? null : (JSON.parse(row.step_baseline) as Counted);
  return { stable: sideOf(stable, before?.stable ?? none), canary: sideOf(canary, before?.canary ?? none) };
}

/** To be stored with the beginning of a step. */
export async function baselineOf(db: Db, row: DeploymentRow, nowMs: number): Promise<string> {
  return JSON.stringify(await countTraffic(db, row, nowMs));
}

/** From the beginning of the bucket that this moment is in. */
async function countTraffic(db: Db, row: DeploymentRow, sinceMs: number): Promise<Counted> {
  const all = { ...keyOf(row), revision: null };
  const rows = await listTraffic(db, all, bucketOf(sinceMs), Number.MAX_SAFE_INTEGER);
  const countsOf = (revision: number | null): Counts => {
    const own = rows.filter((measured) => measured.revision === revision);
    const sum = (count: (measured: Counts) => number) => own.reduce((total, measured) => total + count(measured), 0);
    return {
      requests: sum(({ requests }) => requests),
      errors: sum(({ errors }) => errors),
      latency: Array.from({ length: latencyBoundsMs.length + 1 }, (_, n) => sum(({ latency }) => latency[n] ?? 0)),
    };
  };
  return { stable: countsOf(row.previous_revision), canary: countsOf(row.revision) };
}

function sideOf(all: Counts, before: Counts): Side {
  // Counts only rise, but the oldest are deleted some day.
  const since = (n: number, earlier = 0) => Math.max(0, n - earlier);
  const requests = since(all.requests, before.requests);
  const errors = since(all.errors, before.errors);
  const latency = all.latency.map((count, n) => since(count, before.latency[n]));
  return {
    requests,
    errorRate: requests === 0 ? null : Math.round((errors / requests) * 1e6) / 1e6,
    p95Ms: quantileMs(latency, 0.95),
  };
}
