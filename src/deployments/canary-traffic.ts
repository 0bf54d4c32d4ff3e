// What both revisions answered since the step of a canary began, as the rules judge it.
import type { CanaryPolicy } from '../contract/environments.ts';
import type { Db } from '../db/database.ts';
import { keyOf } from '../environments/environment-key.ts';
import { type Clock, databaseOf } from '../lib/clock.ts';
import { bucketMs, bucketOf } from '../traffic/measurements.ts';
import { type Answered, combineDetail, type Detail, decodeDetail, encodeDetail } from '../traffic/request-detail.ts';
import { listTraffic, type TrafficRow } from '../traffic/traffic-queries.ts';
import type { DeploymentRow } from './deployment-queries.ts';
import { Measured, nothingAnswered, type Window } from './rules/analysis.ts';

/** A router that could not store what it counted for longer than this is too late. */
const settledAfterMs = 5 * 60_000;
const mostKept = 1000;
/** By how much clocks of routers may be ahead. What seems to be later was counted before a clock was set back. */
const aheadMs = 2 * 60_000;
const comingFrom = (clock: Clock): number => databaseOf(clock).now() + aheadMs;

/** Windows that do not change any more, summed. */
interface Settled {
  /** The first window that is not in it. */
  from: number;
  measured: Measured;
}

/** By deployment and step: a canary that has waited for a day costs what a new one does. */
const settledSteps = new Map<string, Settled>();

/**
 * Routers count in windows of ten seconds. What they had counted in the first of them before the step began is taken off:
 * it may be why the canary was paused.
 */
export async function measureStep(db: Db, clock: Clock, row: DeploymentRow, policy: CanaryPolicy): Promise<Measured> {
  if (row.step_since === null) return new Measured();
  const first = bucketOf(row.step_since);
  const key = `${row.id} ${row.step_since} ${row.step_until} ${policy.max_p95_ms}`;
  const settled =
    settledSteps.get(key) ?? keep(key, { from: first, measured: new Measured(await latencyBefore(db, row, first)) });
  const rows = await listCounted(db, { ...keyOf(row), revision: null }, settled.from, comingFrom(clock));
  const windows = windowsOf(rows, row);
  const latest = windows.at(-1)?.at ?? first;
  const warmFrom = row.step_until === null ? 0 : row.step_until - policy.bake_s * 1000;
  const isWarm = (at: number) => policy.warmup_s === 0 || at >= warmFrom;
  const old = windows.filter(({ at }) => at < latest - settledAfterMs);
  if (old.length > 0) {
    const measured = settled.measured.copy();
    for (const window of old) measured.add(window, policy, isWarm(window.at));
    keep(key, { from: old.at(-1)!.at + bucketMs, measured });
  }
  const measured = (settledSteps.get(key) ?? settled).measured.copy();
  for (const window of windows.slice(old.length)) measured.add(window, policy, isWarm(window.at));
  measured.underWay = {
    stable: waitingAt(rows, row.previous_revision, latest),
    canary: waitingAt(rows, row.revision, latest),
  };
  return measured;
}

/** Decoded once, however often it is looked at. */
type Counted = Omit<TrafficRow, 'detail'> & { detail: Detail | null };

async function listCounted(...of: Parameters<typeof listTraffic>): Promise<Counted[]> {
  const rows = await listTraffic(...of);
  return rows.map((row) => ({ ...row, detail: row.detail === null ? null : decodeDetail(row.detail) }));
}

const comparedMs = 5 * 60_000;

async function latencyBefore(db: Db, row: DeploymentRow, first: number): Promise<readonly number[]> {
  const of = { ...keyOf(row), revision: row.previous_revision };
  return answeredBy(await listCounted(db, of, first - comparedMs, first), row.previous_revision).latency;
}

function keep(key: string, settled: Settled): Settled {
  settledSteps.delete(key);
  settledSteps.set(key, settled);
  if (settledSteps.size > mostKept) settledSteps.delete(settledSteps.keys().next().value!);
  return settled;
}

/** What was counted before the step began, in the window in which it did. */
interface Baseline {
  stable: StoredAnswered;
  canary: StoredAnswered;
}

type StoredAnswered = Omit<Answered, 'detail'> & { detail?: string };

/** To be stored when the step begins. */
export async function baselineOf(db: Db, row: DeploymentRow, nowMs: number): Promise<string> {
  const rows = await listCounted(db, { ...keyOf(row), revision: null }, bucketOf(nowMs), nowMs + aheadMs);
  const stored = ({ detail, ...answered }: Answered): StoredAnswered => ({
    ...answered,
    ...(detail && { detail: encodeDetail(detail) }),
  });
  const baseline: Baseline = {
    stable: stored(answeredBy(rows, row.previous_revision)),
    canary: stored(answeredBy(rows, row.revision)),
  };
  return JSON.stringify(baseline);
}

function windowsOf(rows: Counted[], row: DeploymentRow): Window[] {
  const first = bucketOf(row.step_since!);
  const before = row.step_baseline === null ? null : (JSON.parse(row.step_baseline) as Baseline);
  const times = [...new Set(rows.map(({ at }) => at))].sort((a, b) => a - b);
  return times.map((at) => {
    const own = rows.filter((measured) => measured.at === at);
    const [stable, canary] = [answeredBy(own, row.previous_revision), answeredBy(own, row.revision)];
    if (at !== first || before === null) return { at, stable, canary };
    return { at, stable: since(stable, before.stable), canary: since(canary, before.canary) };
  });
}

function answeredBy(rows: Counted[], revision: number | null): Answered {
  const own = rows.filter((measured) => measured.revision === revision);
  if (own.length === 0) return nothingAnswered();
  const sum = (count: (measured: Counted) => number) => own.reduce((total, measured) => total + count(measured), 0);
  const details = own.flatMap(({ detail }) => detail ?? []);
  return {
    requests: sum(({ requests }) => requests),
    errors: sum(({ errors }) => errors),
    clientErrors: sum(({ clientErrors }) => clientErrors),
    latency: own[0]!.latency.map((_, n) => sum(({ latency }) => latency[n] ?? 0)),
    ...(details.length > 0 && { detail: details.reduce((a, b) => combineDetail(a, b, 1)) }),
  };
}

/** Counts only rise. */
function since(all: Answered, before: StoredAnswered): Answered {
  const risen = (n: number, earlier = 0) => Math.max(0, n - earlier);
  const detail: Detail | undefined =
    all.detail && before.detail ? combineDetail(all.detail, decodeDetail(before.detail), -1) : all.detail;
  return {
    requests: risen(all.requests, before.requests),
    errors: risen(all.errors, before.errors),
    clientErrors: risen(all.clientErrors, before.clientErrors),
    latency: all.latency.map((count, n) => risen(count, before.latency[n])),
    ...(detail && { detail }),
  };
}

/** What each router last said of requests that wait, unless that is long ago. */
function waitingAt(rows: Counted[], revision: number | null, latest: number): number[] {
  const newest = new Map<string, Counted>();
  for (const row of rows) {
    if (row.revision !== revision || row.at < latest - bucketMs || row.detail === null) continue;
    if (row.at >= (newest.get(row.router)?.at ?? 0)) newest.set(row.router, row);
  }
  const waiting = [...newest.values()].map(({ detail }) => detail!.waiting);
  return waiting.reduce((sum, one) => one.map((count, n) => count + (sum[n] ?? 0)), [] as number[]);
}
