// In one process a statement costs little: look who is waiting, then take from each in turn, in one transaction.
import { type CompiledQuery, sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { prepared } from '../../db/prepared.ts';
import { wantFor } from '../endpoints/health.ts';
import type { Claimed, Receiver, Wanted } from './claim.ts';

interface Waiting extends Receiver {
  id: string;
  probe_at: number | null;
}

/** Every enabled endpoint with something pending. Walks the index, so a long queue of one costs nothing. */
const selectWaiting = prepared((db) => ({
  compile: () =>
    sql<Waiting>`
      with recursive waiting(id) as (
        select min(webhook_id) from delivery where state = 'pending'
        union all
        select (select min(d.webhook_id) from delivery d where d.state = 'pending' and d.webhook_id > waiting.id)
        from waiting where waiting.id is not null
      )
      select w.id, w.url, w.ordering, w.secret_sealed, w.old_secret_sealed, w.old_secret_until, w.failures, w.probe_at
      from waiting join webhook w on w.id = waiting.id where w.state = 'enabled' order by w.id`.compile(
      db,
    ) as CompiledQuery<Waiting>,
}));

export async function claimOneByOne(db: Db, wanted: Wanted): Promise<Claimed[]> {
  const waiting = await selectWaiting(db);
  const first = waiting.findIndex(({ id }) => id > wanted.after);
  const inTurn = first > 0 ? [...waiting.slice(first), ...waiting.slice(0, first)] : waiting;
  const open = inTurn.map((endpoint) => ({ endpoint, want: wantOf(endpoint, wanted) })).filter(({ want }) => want > 0);
  if (open.length === 0) return [];
  return db.transaction().execute(async (tx) => {
    const claimed: Claimed[] = [];
    for (const { endpoint, want } of open) {
      const left = wanted.limit - claimed.length;
      if (left <= 0) break;
      claimed.push(...(await claimOf(tx, endpoint, Math.min(want, left), wanted)));
    }
    return claimed;
  });
}

function wantOf({ id, ordering, failures, probe_at }: Waiting, { loads, nowMs }: Wanted): number {
  return wantFor({ failures, probeAt: probe_at }, ordering === 'strict', loads.get(id), nowMs);
}

/** Where the order is strict, the first in turn and no other: while it waits or is being sent, all behind it wait. */
async function claimOf(tx: Db, endpoint: Waiting, want: number, { nowMs, lease, untilMs }: Wanted): Promise<Claimed[]> {
  const { id, probe_at: _, ...receiver } = endpoint;
  const chosen =
    endpoint.ordering === 'strict'
      ? sql`select c.id from delivery c where c.webhook_id = ${id} and c.state = 'pending'
          order by c.position, c.id limit 1`
      : sql`select c.id from delivery c where c.webhook_id = ${id} and c.state = 'pending'
          and c.due_at <= ${nowMs} and c.lease_until <= ${nowMs} order by c.due_at, c.id limit ${want}`;
  const { rows } = await sql<Omit<Claimed, keyof Receiver>>`
    update delivery set lease = ${lease}, lease_until = ${untilMs}
    where delivery.id in (${chosen}) and delivery.due_at <= ${nowMs} and delivery.lease_until <= ${nowMs}
    returning delivery.id, delivery.webhook_id, delivery.event_id, delivery.type, delivery.attempts, delivery.tried,
      delivery.lease, coalesce(delivery.test_body, (select e.body from event e where e.id = delivery.event_id)) as body`.execute(
    tx,
  );
  return rows.map((row) => ({ ...row, ...receiver }));
}
