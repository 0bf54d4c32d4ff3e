// Keeps the logs of an environment within their size and age: the oldest segments go first.
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { deleteInSlices } from '../../db/delete-slice.ts';
import type { RetentionClock } from '../../db/retention-clock.ts';
import { type EnvironmentKey, keyOf } from '../../environments/environment-key.ts';
import type { Places } from './segment-bytes.ts';
import { deleteSegments, knownBlobs, type SegmentRow } from './segments.ts';

interface RetentionParts {
  db: Db;
  retention: RetentionClock;
  places: Places;
  maxBytes: number;
  days: number;
}

const dayMs = 86_400_000;
const hourMs = 3_600_000;
const rowsAtOnce = 200;

/** Drops what is too much of any environment. */
export async function trimLogs(parts: RetentionParts): Promise<void> {
  await dropOld(parts);
  const sizes = await parts.db
    .selectFrom('log_segment')
    .select((e) => ['project_id', 'environment', e.fn.sum<number>('bytes').as('bytes')])
    .groupBy(['project_id', 'environment'])
    .having((e) => e.fn.sum('bytes'), '>', parts.maxBytes)
    .execute();
  for (const row of sizes) await dropExcess(parts, keyOf(row), Number(row.bytes) - parts.maxBytes);
}

async function dropOld(parts: RetentionParts): Promise<void> {
  const before = (await parts.retention.now()) - parts.days * dayMs;
  for (;;) {
    const query = parts.db.selectFrom('log_segment').selectAll().where('to_at', '<', before);
    const rows = await query.limit(rowsAtOnce).execute();
    if (rows.length === 0) break;
    await drop(parts, rows);
  }
  // How far a log was collected is needed while its instance may still be there.
  await deleteInSlices(
    parts.db,
    'log_stream',
    sql`updated_at < ${before - dayMs} and not exists (select 1 from instance where instance.id = instance_id)`,
  );
}

async function dropExcess(parts: RetentionParts, key: EnvironmentKey, excess: number): Promise<void> {
  for (let left = excess; left > 0; ) {
    const oldest = await parts.db
      .selectFrom('log_segment')
      .selectAll()
      .where('project_id', '=', key.projectId)
      .where('environment', '=', key.environment)
      .orderBy('to_at')
      .limit(rowsAtOnce)
      .execute();
    const dropped: SegmentRow[] = [];
    for (const row of oldest) {
      if (left <= 0) break;
      left -= row.bytes;
      dropped.push(row);
    }
    if (dropped.length === 0) return;
    await drop(parts, dropped);
  }
}

async function drop({ db, places }: RetentionParts, rows: SegmentRow[]): Promise<void> {
  await deleteSegments(db, rows);
  for (const row of rows) await places.of(row.place)?.delete(keyOf(row), [row.blob]);
}

/** Deletes bytes that no segment refers to: of deleted environments, and what a crash left behind. */
export async function sweepBytes({ db, places }: Pick<RetentionParts, 'db' | 'places'>, nowMs: number): Promise<void> {
  for (const place of ['files', 'database', 's3'] as const) {
    await places.of(place)?.sweep(knownBlobs(db), nowMs - hourMs);
  }
}
