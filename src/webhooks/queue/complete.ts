// Writing down how deliveries went, many at once: the attempt, what becomes of the delivery, how the endpoint is doing.
// Whoever has lost the lease meanwhile writes nothing.
import { CompiledQuery, type RawBuilder, sql } from 'kysely';
import type { DeliveryState } from '../../contract/deliveries.ts';
import type { Db } from '../../db/database.ts';
import type { DialectName } from '../../db/migrations/types.ts';
import { type Health, hasFailedTooLong, healthAfter, type Round } from '../endpoints/health.ts';
import { jsonRows } from './json-rows.ts';

export interface Outcome {
  id: string;
  webhook_id: string;
  lease: string;
  /** Of the attempt. */
  number: number;
  at: number;
  duration_ms: number;
  status: number | null;
  error: string | null;
  answer: string | null;
  /** Of the delivery from now on. */
  state: DeliveryState;
  tried: number;
  due_at: number;
  finished_at: number | null;
}

const types = {
  id: 'text',
  lease: 'text',
  number: 'bigint',
  at: 'bigint',
  duration_ms: 'bigint',
  status: 'bigint',
  error: 'text',
  answer: 'text',
  state: 'text',
  tried: 'bigint',
  due_at: 'bigint',
  finished_at: 'bigint',
} as const;

const changes = `state = r.state, attempts = r.number, tried = r.tried, due_at = r.due_at, finished_at = r.finished_at,
  lease = null, lease_until = 0`;
const attemptColumns = 'delivery_id, number, at, duration_ms, status, error, answer';
const attemptValues = 'r.id, r.number, r.at, r.duration_ms, r.status, r.error, r.answer';

/** The rows are found by an array of ids, as when they are claimed. */
const atOnce = `
  with r as materialized (
    select * from json_to_recordset($1::json) as r(${Object.entries(types)
      .map(([name, type]) => `${name} ${type}`)
      .join(', ')})
  ),
  done as (
    update delivery d set ${changes} from r
    where d.id = r.id and d.lease = r.lease and d.id = any(array(select id from r)) returning d.id
  )
  insert into attempt (${attemptColumns}) select ${attemptValues} from r join done on done.id = r.id`;

export async function completeDeliveries(db: Db, dialect: DialectName, outcomes: Outcome[]): Promise<void> {
  const json = JSON.stringify(outcomes);
  if (dialect === 'postgres') {
    await db.executeQuery(CompiledQuery.raw(atOnce, [json]));
    return;
  }
  const rows: RawBuilder<unknown> = jsonRows(dialect, json, types);
  await db.transaction().execute(async (tx) => {
    await sql`insert into attempt (${sql.raw(attemptColumns)})
      select ${sql.raw(attemptValues)} from ${rows} join delivery d on d.id = r.id and d.lease = r.lease`.execute(tx);
    await sql`update delivery as d set ${sql.raw(changes)}
      from ${rows} where d.id = r.id and d.lease = r.lease`.execute(tx);
  });
}

export interface HealthChange extends Round {
  webhookId: string;
  /** It answered 410: it wants nothing more. */
  gone: boolean;
}

/** Only where something changes: an endpoint that is well costs nothing here. Gives those that are now disabled. */
export async function markHealth(db: Db, changed: HealthChange[], nowMs: number, random: number): Promise<string[]> {
  const disabled: string[] = [];
  for (const { webhookId, gone, ...round } of changed) {
    const disabledNow = await db.transaction().execute(async (tx) => {
      const row = await tx
        .selectFrom('webhook')
        .select(['failures', 'failing_since', 'probe_at'])
        .where('id', '=', webhookId)
        .where('state', '=', 'enabled')
        .executeTakeFirst();
      if (!row) return false;
      const before: Health = { failures: row.failures, failingSince: row.failing_since, probeAt: row.probe_at };
      const after = healthAfter(before, round, nowMs, random);
      const reason = gone ? 'The receiver answered 410 Gone.' : hasFailedTooLong(after, nowMs) ? failedTooLong : null;
      const { numUpdatedRows } = await tx
        .updateTable('webhook')
        .set((e) => ({
          failures: after.failures,
          failing_since: after.failingSince,
          probe_at: after.probeAt,
          ...(reason && { state: 'disabled' as const, disabled_reason: reason, version: e('version', '+', 1) }),
        }))
        .where('id', '=', webhookId)
        .where('state', '=', 'enabled')
        .executeTakeFirst();
      return reason !== null && numUpdatedRows === 1n;
    });
    if (disabledNow) disabled.push(webhookId);
  }
  return disabled;
}

const failedTooLong = 'No delivery succeeded for five days.';
