// What is deleted for its age, how much there is of what grows, and the room in the file that it leaves. Everything goes in
// slices: no other statement waits for long.
import { sql } from 'kysely';
import { Gauge, type Registry } from 'prom-client';
import { deleteAlertsBefore } from '../alerts/alert-queries.ts';
import type { Database } from '../db/database.ts';
import { readDatabaseSize } from '../db/database-size.ts';
import { deleteInSlices } from '../db/delete-slice.ts';
import { sweepDeployments } from '../deployments/deployment-retention.ts';
import { deleteUsageBefore, usageKeptForMs } from '../deployments/usage-queries.ts';
import type { EnvironmentKey } from '../environments/environment-key.ts';
import { deleteKeptHostsBefore } from '../environments/environment-queries.ts';
import { sweepIdempotencyKeys } from '../http/api/idempotency.ts';
import { idFloor } from '../lib/ids.ts';
import type { Loop } from '../lib/loops.ts';
import { deleteSessionsBefore } from '../tokens/session-queries.ts';
import { deleteEndedTokensBefore } from '../tokens/token-queries.ts';
import type { Common } from './common.ts';

const dayMs = 86_400_000;
const hourMs = 3_600_000;

export interface RetentionSettings {
  eventRetentionDays: number;
  deploymentRetentionDays: number;
  deploymentRetentionCount: number;
  auditRetentionDays: number;
}

type Parts = Pick<Common, 'db' | 'retention' | 'loops'> & { shrink?: Database['shrink']; registry: Registry };

export function startRetention(parts: Parts, settings: RetentionSettings) {
  const { db, retention, loops } = parts;
  const every = (intervalMs: number, name: string, step: () => Promise<void>) =>
    loops.start({ name, intervalMs, step });
  const before = async (days: number) => (await retention.now()) - days * dayMs;
  const { eventRetentionDays, deploymentRetentionDays, deploymentRetentionCount, auditRetentionDays } = settings;
  let sweptTo: EnvironmentKey | null = null;
  const deployments = every(hourMs, 'old deployments', async () => {
    const kept = { olderThanMs: await before(deploymentRetentionDays), most: deploymentRetentionCount };
    sweptTo = await sweepDeployments(db, kept, sweptTo);
    if (sweptTo !== null) deployments.wake();
  });
  const running: Loop[] = [
    deployments,
    every(60_000, 'old usage', async () => deleteUsageBefore(db, (await retention.now()) - usageKeptForMs)),
    every(600_000, 'idempotency keys', async () => sweepIdempotencyKeys(db, await retention.now())),
    every(hourMs, 'addresses kept for their account', async () => deleteKeptHostsBefore(db, await retention.now())),
    every(hourMs, 'old sessions', async () => deleteSessionsBefore(db, await before(1))),
    every(hourMs, 'old alerts', async () => deleteAlertsBefore(db, await before(eventRetentionDays))),
    every(hourMs, 'old audit rows and tokens', async () => {
      const ms = await before(auditRetentionDays);
      await deleteInSlices(db, 'audit', sql`id < ${idFloor('aud', ms)}`);
      await deleteEndedTokensBefore(db, ms);
    }),
    measureSizes(parts),
    ...shrinkFile(parts),
  ];
  return {
    async stop(): Promise<void> {
      await Promise.all(running.map((loop) => loop.stop()));
    },
  };
}

function measureSizes({ db, loops, registry }: Parts): Loop {
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers: [registry] });
  const bytes = gauge('sluice_database_bytes', 'Size of the database.');
  const free = gauge('sluice_database_free_bytes', 'How much of it is free for new rows (SQLite).');
  const rows = gauge('sluice_database_rows', 'Rows of the tables that grow, as of the last hour.', ['table']);
  return loops.start({
    name: 'database size',
    intervalMs: hourMs,
    async step() {
      const size = await readDatabaseSize(db);
      bytes.set(size.bytes);
      if (size.free !== null) free.set(size.free);
      for (const [table, count] of size.rows) rows.set({ table }, count);
    },
  });
}

/** What may stay free, as a part of the file and at least: it is used again. */
const freePart = 0.25;
const freeBytes = 8 * 1024 * 1024;
const pagesAtOnce = 500;

/** Gives the room that deleted rows have left in the file back to the disk, some pages at a time. */
function shrinkFile({ db, loops, shrink }: Parts): Loop[] {
  if (!shrink) return [];
  const loop = loops.start({
    name: 'room in the database file',
    intervalMs: hourMs,
    async step() {
      const { bytes, free } = await readDatabaseSize(db);
      if ((free ?? 0) < Math.max(freeBytes, bytes * freePart)) return;
      if ((await shrink(pagesAtOnce)) > 0) loop.wake();
    },
  });
  return [loop];
}
