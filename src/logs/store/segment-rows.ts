import type { Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import type { SegmentBytes } from './segment-bytes.ts';

const rowsAtOnce = 500;

/** Rows of the database, so that every process reads what any of them has collected. */
export function segmentRows(db: Db, clock: Clock): SegmentBytes {
  return {
    async save({ projectId: project_id, environment }, id, data) {
      await db.insertInto('log_blob').values({ id, project_id, environment, data, created_at: clock.now() }).execute();
    },
    async read(_key, blob) {
      const row = await db.selectFrom('log_blob').select('data').where('id', '=', blob).executeTakeFirst();
      return row ? Buffer.from(row.data) : null;
    },
    async delete(_key, blobs) {
      if (blobs.length > 0) await db.deleteFrom('log_blob').where('id', 'in', blobs).execute();
    },
    async sweep(known, olderThanMs) {
      const keys = await db.selectFrom('log_blob').select(['project_id', 'environment']).distinct().execute();
      for (const { project_id, environment } of keys) {
        if (await known.hasEnvironment({ projectId: project_id, environment })) continue;
        const gone = db.deleteFrom('log_blob').where('project_id', '=', project_id);
        await gone.where('environment', '=', environment).execute();
      }
      for (let after = ''; ; ) {
        const rows = await db
          .selectFrom('log_blob')
          .select(['id', 'created_at'])
          .where('id', '>', after)
          .orderBy('id')
          .limit(rowsAtOnce)
          .execute();
        if (rows.length === 0) return;
        after = rows.at(-1)!.id;
        const used = await known.referredTo(rows.map(({ id }) => id));
        const unused = rows.filter(({ id, created_at }) => !used.has(id) && created_at < olderThanMs);
        if (unused.length > 0) {
          const ids = unused.map(({ id }) => id);
          await db.deleteFrom('log_blob').where('id', 'in', ids).execute();
        }
      }
    },
  };
}
