// What the watcher remembers from one evaluation to the next.
import type { Selectable } from 'kysely';
import type { Db } from '../db/database.ts';
import type { Tables } from '../db/tables.ts';
import type { Watch } from './evaluate.ts';

export interface FiringAlert {
  id: string;
  project_id: string;
  environment: string;
  rule_id: string;
  subject: string;
  /** Its rule is deleted or disabled. */
  orphan: boolean;
}

/** All but those of enabled external rules, which Alertmanager resolves. */
export async function listFiring(db: Db): Promise<FiringAlert[]> {
  const rows = await db
    .selectFrom('alert as a')
    .leftJoin('alert_rule as r', 'r.id', 'a.rule_id')
    .select(['a.id', 'a.project_id', 'a.environment', 'a.rule_id', 'a.subject', 'r.enabled'])
    .where('a.resolved_at', 'is', null)
    .where((e) => e.or([e('r.id', 'is', null), e('r.enabled', '=', 0), e('r.metric', '!=', 'external')]))
    .execute();
  return rows.map(({ enabled, ...row }) => ({ ...row, orphan: enabled !== 1 }));
}

export async function listWatches(db: Db): Promise<Selectable<Tables['alert_watch']>[]> {
  return db.selectFrom('alert_watch').selectAll().execute();
}

export interface WatchChange {
  rule_id: string;
  subject: string;
  /** null: there is nothing left to wait for. */
  watch: Watch | null;
}

const atOnce = 200;

/** If two processes see the same condition begin, the earlier time counts. */
export async function writeWatches(db: Db, changes: WatchChange[]): Promise<void> {
  for (let i = 0; i < changes.length; i += atOnce) {
    const part = changes.slice(i, i + atOnce);
    const gone = part.filter(({ watch }) => watch === null);
    const rows = part.flatMap(({ rule_id, subject, watch }) =>
      watch ? [{ rule_id, subject, holds: watch.holds ? 1 : 0, since: watch.since }] : [],
    );
    await db.transaction().execute(async (tx) => {
      if (gone.length > 0) await deleteWatches(tx, gone);
      if (rows.length > 0) await upsertWatches(tx, rows);
    });
  }
}

async function deleteWatches(tx: Db, gone: WatchChange[]): Promise<void> {
  await tx
    .deleteFrom('alert_watch')
    .where((e) => e.or(gone.map(({ rule_id, subject }) => e.and({ rule_id, subject }))))
    .execute();
}

/** Skips rules that were deleted since they were read. */
async function upsertWatches(tx: Db, rows: Tables['alert_watch'][]): Promise<void> {
  const rules = [...new Set(rows.map((row) => row.rule_id))];
  const found = await tx.selectFrom('alert_rule').select('id').where('id', 'in', rules).execute();
  const known = new Set(found.map(({ id }) => id));
  const left = rows.filter((row) => known.has(row.rule_id)).sort((a, b) => (a.rule_id < b.rule_id ? -1 : 1));
  if (left.length === 0) return;
  await tx
    .insertInto('alert_watch')
    .values(left)
    .onConflict((conflict) =>
      conflict
        .columns(['rule_id', 'subject'])
        .doUpdateSet((e) => ({ holds: e.ref('excluded.holds'), since: e.ref('excluded.since') }))
        .where((e) =>
          e.or([
            e('alert_watch.holds', '!=', e.ref('excluded.holds')),
            e('alert_watch.since', '>', e.ref('excluded.since')),
          ]),
        ),
    )
    .execute();
}
