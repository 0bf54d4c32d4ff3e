import type { Db } from '../db/database.ts';
import { keyOf } from '../environments/environment-key.ts';
import { bucketOf, latencyBoundsMs } from '../traffic/measurements.ts';
import { listTraffic } from '../traffic/traffic-queries.ts';
import type { DeploymentRow } from './deployment-queries.ts';
import { type Answered, type Comparison, nothingAnswered } from './rules/analysis.ts';

/**
 * What both revisions answered since the requests of the canary's step count. Routers count in buckets of ten seconds,
 * so what they had counted in the first of them before that is taken off: it may be why the canary was paused.
 */
export async function compareTraffic(db: Db, row: DeploymentRow): Promise<Comparison> {
  if (row.step_since === null || row.step_baseline === null)
    return { stable: nothingAnswered, canary: nothingAnswered };
  const { stable, canary } = await countTraffic(db, row, row.step_since);
  const before = JSON.parse(row.step_baseline) as Comparison;
  return { stable: since(stable, before.stable), canary: since(canary, before.canary) };
}

/** To be stored when requests begin to count. */
export async function baselineOf(db: Db, row: DeploymentRow, nowMs: number): Promise<string> {
  return JSON.stringify(await countTraffic(db, row, nowMs));
}

/** From the beginning of the bucket that this moment is in. */
async function countTraffic(db: Db, row: DeploymentRow, sinceMs: number): Promise<Comparison> {
  const all = { ...keyOf(row), revision: null };
  const rows = await listTraffic(db, all, bucketOf(sinceMs), Number.MAX_SAFE_INTEGER);
  const answeredBy = (revision: number | null): Answered => {
    const own = rows.filter((measured) => measured.revision === revision);
    const sum = (count: (measured: Answered) => number) => own.reduce((total, measured) => total + count(measured), 0);
    return {
      requests: sum(({ requests }) => requests),
      errors: sum(({ errors }) => errors),
      clientErrors: sum(({ clientErrors }) => clientErrors),
      latency: Array.from({ length: latencyBoundsMs.length + 1 }, (_, n) => sum(({ latency }) => latency[n] ?? 0)),
    };
  };
  return { stable: answeredBy(row.previous_revision), canary: answeredBy(row.revision) };
}

/** Counts only rise, but the oldest are deleted some day. */
function since(all: Answered, before: Answered): Answered {
  const risen = (n: number, earlier = 0) => Math.max(0, n - earlier);
  return {
    requests: risen(all.requests, before.requests),
    errors: risen(all.errors, before.errors),
    clientErrors: risen(all.clientErrors, before.clientErrors),
    latency: all.latency.map((count, n) => risen(count, before.latency[n])),
  };
}
