// The rows of segments: what was printed when, by which instance, and where its bytes are. A segment and how far the log of
// its instance has been collected are written together, so after a crash collecting goes on right behind what is stored.
import type { Selectable } from 'kysely';
import type { Db } from '../../db/database.ts';
import { isForeignKeyViolation } from '../../db/database-errors.ts';
import { changeOne } from '../../db/guarded.ts';
import type { Tables } from '../../db/tables.ts';
import type { EnvironmentKey } from '../../environments/environment-key.ts';
import { publish } from '../../signals/signals.ts';
import type { KnownBlobs } from './segment-bytes.ts';

export type StreamRow = Selectable<Tables['log_stream']>;
export type SegmentRow = Selectable<Tables['log_segment']>;

/** An instance whose log is collected. */
export interface LoggedInstance {
  id: string;
  key: EnvironmentKey;
  revision: number;
}

/** null: its environment is gone. */
export async function openStream(db: Db, { id, key, revision }: LoggedInstance, nowMs: number) {
  const newStream: StreamRow = {
    instance_id: id,
    project_id: key.projectId,
    environment: key.environment,
    revision,
    position: null,
    latest: '',
    seq: 1,
    version: 1,
    updated_at: nowMs,
  };
  try {
    await db
      .insertInto('log_stream')
      .values(newStream)
      .onConflict((conflict) => conflict.column('instance_id').doNothing())
      .execute();
  } catch (error) {
    if (isForeignKeyViolation(error)) return null;
    throw error;
  }
  const row = await db.selectFrom('log_stream').selectAll().where('instance_id', '=', id).executeTakeFirst();
  if (!row) return null;
  // What another process left unfinished stays as it is.
  const isTaken = (await findSegment(db, key, id, row.seq)) !== undefined;
  return isTaken ? { ...row, seq: row.seq + 1 } : row;
}

/** Throws ChangedMeanwhile where another process collects the log by now, or the environment is gone. */
export async function writeSegment(db: Db, stream: StreamRow, version: number, segment: SegmentRow): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const { instance_id, position, latest, seq, updated_at } = stream;
    await changeOne(
      tx
        .updateTable('log_stream')
        .set({ position, latest, seq, version: version + 1, updated_at })
        .where('instance_id', '=', instance_id)
        .where('version', '=', version),
    );
    const { instance_id: _instance, seq: _seq, ...changed } = segment;
    await tx
      .insertInto('log_segment')
      .values(segment)
      .onConflict((conflict) => conflict.columns(['instance_id', 'seq']).doUpdateSet(changed))
      .execute();
    publish(tx, 'logs', { projectId: segment.project_id, environment: segment.environment });
  });
}

export interface SegmentFilter {
  fromMs: number;
  toMs: number;
  revision?: number | undefined;
  instance?: string | undefined;
  /** Not of these instances. */
  without?: ReadonlySet<string> | undefined;
}

/** Those that may hold lines of the time, newest first. */
export async function listSegments(db: Db, key: EnvironmentKey, filter: SegmentFilter): Promise<SegmentRow[]> {
  let query = segmentsOf(db, key).where('to_at', '>=', filter.fromMs).where('from_at', '<=', filter.toMs);
  if (filter.revision !== undefined) query = query.where('revision', '=', filter.revision);
  if (filter.instance !== undefined) query = query.where('instance_id', '=', filter.instance);
  if (filter.without && filter.without.size > 0) query = query.where('instance_id', 'not in', [...filter.without]);
  return query.orderBy('to_at', 'desc').orderBy('instance_id', 'desc').orderBy('seq', 'desc').execute();
}

/** Those that were written since, in any order. */
export function listChangedSegments(db: Db, key: EnvironmentKey, sinceMs: number): Promise<SegmentRow[]> {
  return segmentsOf(db, key).where('updated_at', '>=', sinceMs).execute();
}

const segmentsOf = (db: Db, { projectId, environment }: EnvironmentKey) =>
  db.selectFrom('log_segment').selectAll().where('project_id', '=', projectId).where('environment', '=', environment);

export async function findSegment(db: Db, key: EnvironmentKey, instance: string, seq: number) {
  return segmentsOf(db, key).where('instance_id', '=', instance).where('seq', '=', seq).executeTakeFirst();
}

/** Not those that have grown meanwhile. */
export async function deleteSegments(db: Db, rows: readonly SegmentRow[]): Promise<void> {
  for (const { instance_id, seq, blob } of rows) {
    const own = db.deleteFrom('log_segment').where('instance_id', '=', instance_id).where('seq', '=', seq);
    await own.where('blob', '=', blob).execute();
  }
}

export function knownBlobs(db: Db): KnownBlobs {
  return {
    async hasEnvironment({ projectId, environment }) {
      const query = db.selectFrom('environment').select('name').where('project_id', '=', projectId);
      return (await query.where('name', '=', environment).executeTakeFirst()) !== undefined;
    },
    async referredTo(blobs) {
      if (blobs.length === 0) return new Set();
      const rows = await db.selectFrom('log_segment').select('blob').where('blob', 'in', blobs).execute();
      return new Set(rows.map(({ blob }) => blob));
    },
  };
}
