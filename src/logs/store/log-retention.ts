// Keeps the logs of an environment within their size and age, and those of an account within its quota: the oldest segments
// go first.
import { sql } from 'kysely';
import type { Quotas } from '../../accounts/quotas.ts';
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
  quotas: Quotas;
}

const dayMs = 86_400_000;
const hourMs = 3_600_000;
const rowsAtOnce = 200;

/** Drops what is too much of any environment or account, and notes what each account has. */
export async function trimLogs(parts: RetentionParts): Promise<void> {
  const { db, quotas } = parts;
  await dropOld(parts);
  const accounts = await db.selectFrom('account').select('id').execute();
  for (const { id } of accounts) {
    const sizes = await trimEnvironments(parts, id);
    const cap = capWithin(
      sizes.map(({ bytes }) => bytes),
      quotas.limitOf(id, 'log_bytes'),
    );
    for (const { key, bytes } of sizes) if (bytes > cap) await dropExcess(parts, key, bytes - cap);
    await noteUsed(
      db,
      id,
      sizes.reduce((sum, { bytes }) => sum + Math.min(bytes, cap), 0),
    );
  }
}

/** The most that each may keep so that all together fit: the largest give first. No I/O. */
export function capWithin(sizes: readonly number[], limit: number | null): number {
  const sum = sizes.reduce((total, bytes) => total + bytes, 0);
  if (limit === null || sum <= limit) return Number.POSITIVE_INFINITY;
  let left = limit;
  const ascending = sizes.toSorted((a, b) => a - b);
  for (const [index, bytes] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index));
    if (bytes > share) return share;
    left -= bytes;
  }
  return 0;
}

/** What each environment of the account has, after what is too much is gone. One is summed at a time: nobody waits for all. */
async function trimEnvironments(parts: RetentionParts, accountId: string) {
  const { db, maxBytes } = parts;
  const environments = await db
    .selectFrom('environment')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .select(['environment.project_id', 'environment.name as environment'])
    .where('project.account_id', '=', accountId)
    .execute();
  const sizes: { key: EnvironmentKey; bytes: number }[] = [];
  for (const row of environments) {
    const { sum } = await db
      .selectFrom('log_segment')
      .select((e) => e.fn.sum<number | null>('bytes').as('sum'))
      .where('project_id', '=', row.project_id)
      .where('environment', '=', row.environment)
      .executeTakeFirstOrThrow();
    const bytes = Number(sum ?? 0);
    if (bytes > maxBytes) await dropExcess(parts, keyOf(row), bytes - maxBytes);
    if (bytes > 0) sizes.push({ key: keyOf(row), bytes: Math.min(bytes, maxBytes) });
  }
  return sizes;
}

async function noteUsed(db: Db, account_id: string, used: number): Promise<void> {
  await db
    .insertInto('account_usage')
    .values({ account_id, resource: 'log_bytes', used })
    .onConflict((conflict) => conflict.columns(['account_id', 'resource']).doUpdateSet({ used }))
    .execute();
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
