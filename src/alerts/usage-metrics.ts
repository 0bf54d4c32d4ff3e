// What instances use, as Prometheus metrics: the latest measurement of every instance that is there.
import { Counter, Gauge, type Registry } from 'prom-client';
import { revisionId } from '../contract/revision-id.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';

/** Three measurements may be missing; then an instance has no series until there is one again. */
const newerThanMs = 45_000;
/** Measurements in that time. */
const measuredPerInstance = 5;

const labelNames = ['project', 'environment', 'revision', 'instance'] as const;

export function registerUsageMetrics(
  registry: Registry,
  { db, clock }: { db: Db; clock: Clock },
  maxInstances: number,
): void {
  let reading: ReturnType<typeof listLatest> | null = null;
  /** Both figures are collected at the same time: one read serves them. */
  const read = () => {
    reading ??= listLatest(db, clock.now() - newerThanMs, maxInstances)
      .catch(() => [])
      .finally(() => {
        reading = null;
      });
    return reading;
  };
  new Gauge({
    name: 'sluice_instance_memory_bytes',
    help: 'Memory of an instance, without files that are only cached.',
    labelNames,
    registers: [registry],
    async collect() {
      const latest = await read();
      this.reset();
      for (const { labels, memoryBytes } of latest) this.set(labels, memoryBytes);
    },
  });
  new Counter({
    name: 'sluice_instance_cpu_seconds_total',
    help: 'CPU time that an instance has used since it started.',
    labelNames,
    registers: [registry],
    async collect() {
      const latest = await read();
      this.reset();
      for (const { labels, cpuMs } of latest) this.inc(labels, cpuMs / 1000);
    },
  });
}

async function listLatest(db: Db, afterMs: number, maxInstances: number) {
  const rows = await db
    .selectFrom('instance_usage as u')
    .innerJoin('instance as i', 'i.id', 'u.instance_id')
    .select(['u.project_id', 'u.environment', 'u.revision', 'u.instance_id', 'u.memory_bytes', 'u.cpu_ms'])
    .where('u.at', '>', afterMs)
    .orderBy('u.at', 'desc')
    .limit(maxInstances * measuredPerInstance)
    .execute();
  const latest = new Map<string, (typeof rows)[number]>();
  for (const row of rows) if (!latest.has(row.instance_id)) latest.set(row.instance_id, row);
  return [...latest.values()].slice(0, maxInstances).map((row) => ({
    labels: {
      project: row.project_id,
      environment: row.environment,
      revision: revisionId(row.revision),
      instance: row.instance_id,
    },
    memoryBytes: row.memory_bytes,
    cpuMs: row.cpu_ms,
  }));
}
