// What instances used, as series for charts: one series per instance, one point per step.
import { spanOf } from '../alerts/traffic-series.ts';
import { getUsage, type Usage } from '../contract/metrics.ts';
import { revisionId, revisionNumber } from '../contract/references.ts';
import type { Db } from '../db/database.ts';
import type { EnvironmentKey } from '../environments/environment-key.ts';
import { type EnvironmentRow, requireEnvironment } from '../environments/environment-queries.ts';
import { resourcesOf } from '../environments/revision-settings.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import type { Clock } from '../lib/clock.ts';
import { isoTime } from '../lib/iso-time.ts';
import { listResources } from './deployment-queries.ts';
import { listUsageSteps, type UsageStep, usageKeptForMs } from './usage-queries.ts';

export function usageRoutes({ clock }: { clock: Clock }): ServedRoute[] {
  return [
    serve(getUsage, async (call, db) => {
      const environment = await requireEnvironment(db, call.caller, call.params);
      const nowMs = clock.now();
      const { revision, ...span } = call.query;
      const number = revision === undefined ? null : revisionNumber(revision);
      return { body: await readUsageSeries(db, environment, number, spanOf(span, nowMs), nowMs) };
    }),
  ];
}

type Span = ReturnType<typeof spanOf>;
type Point = Usage['series'][number]['points'][number];

const maxSeries = 50;
/** How much one query reads, so that a long span does not block other requests. */
const sliceMs = 6 * 3_600_000;
/** A measurement may come a little late, or be missing once. Over a longer gap CPU is not known. */
const toleratedMs = 30_000;

async function readUsageSeries(
  db: Db,
  environment: EnvironmentRow,
  revision: number | null,
  span: Span,
  nowMs: number,
): Promise<Usage> {
  const key = { projectId: environment.project_id, environment: environment.name };
  const instances = await readSteps(db, key, span, Math.max(nowMs - usageKeptForMs, environment.created_at), nowMs);
  const newest = [...instances]
    .filter(([, steps]) => steps.some(({ step }) => step > 0) && (revision === null || steps[0]!.revision === revision))
    .sort(([a], [b]) => (a < b ? 1 : -1))
    .slice(0, maxSeries);
  const resources = await listResources(
    db,
    key,
    newest.map(([, steps]) => steps[0]!.revision),
  );
  return {
    from: isoTime(span.fromMs),
    to: isoTime(span.toMs),
    step_s: span.stepMs / 1000,
    series: newest.map(([instance, steps]) => ({
      instance,
      revision: revisionId(steps[0]!.revision),
      limits: resources.get(steps[0]!.revision) ?? resourcesOf({ resources: '{}' }),
      points: pointsOf(steps, span),
    })),
  };
}

/** By instance, oldest first. Step 0 is the one before the span: what CPU was used is the difference to it. */
async function readSteps(
  db: Db,
  key: EnvironmentKey,
  { fromMs, toMs, stepMs }: Span,
  notBeforeMs: number,
  nowMs: number,
): Promise<Map<string, UsageStep[]>> {
  const originMs = fromMs - stepMs;
  const instances = new Map<string, Map<number, UsageStep>>();
  const lastMs = Math.min(toMs, nowMs + stepMs);
  for (let from = Math.max(originMs, notBeforeMs); from < lastMs; from += sliceMs) {
    const to = Math.min(from + sliceMs, lastMs);
    for (const found of await listUsageSteps(db, key, { originMs, stepMs }, from, to)) {
      const steps = instances.get(found.instance) ?? new Map<number, UsageStep>();
      instances.set(found.instance, steps);
      steps.set(found.step, merged(steps.get(found.step), found));
    }
  }
  return new Map(
    [...instances].map(([instance, steps]) => [instance, [...steps.values()].sort((a, b) => a.step - b.step)]),
  );
}

/** Of a step that two slices share. */
const merged = (a: UsageStep | undefined, b: UsageStep): UsageStep =>
  a === undefined ? b : { ...b, memoryBytes: Math.max(a.memoryBytes, b.memoryBytes), first: a.first };

export function pointsOf(steps: UsageStep[], { fromMs, toMs, stepMs }: Span): Point[] {
  const points: Point[] = Array.from({ length: (toMs - fromMs) / stepMs }, (_, index) => ({
    at: isoTime(fromMs + index * stepMs),
    memory_bytes: null,
    cpus: null,
  }));
  for (const [index, step] of steps.entries()) {
    const point = points[step.step - 1];
    if (!point) continue;
    point.memory_bytes = step.memoryBytes;
    const before = steps[index - 1]?.last;
    const isRecent = before !== undefined && step.last.at - before.at <= 2 * stepMs + toleratedMs;
    point.cpus = cpusBetween(isRecent ? before : step.first, step.last);
  }
  return points;
}

/** null: there is one count alone, or it began anew. */
function cpusBetween(before: UsageStep['first'], after: UsageStep['last']): number | null {
  const usedMs = after.cpuMs - before.cpuMs;
  const passedMs = after.at - before.at;
  return usedMs < 0 || passedMs <= 0 ? null : Math.round((usedMs / passedMs) * 1e4) / 1e4;
}
