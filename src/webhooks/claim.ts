// Taking deliveries to send. A claim is a lease: until it runs out nobody else takes the delivery, and only who holds it
// can say how it went. On PostgreSQL several processes claim at once, each skipping what another is about to take.
import { type CompiledQuery, sql } from 'kysely';
import type { DeliveryType, Ordering } from '../contract/webhooks.ts';
import type { Db } from '../db/database.ts';
import type { DialectName } from '../db/migrations/types.ts';
import { prepared } from '../db/prepared.ts';
import type { Health } from './health.ts';
import { jsonRows } from './json-rows.ts';

export interface Endpoint extends Health {
  id: string;
  url: string;
  ordering: Ordering;
  secretSealed: string;
  oldSecretSealed: string | null;
  oldSecretUntil: number | null;
  /** When the next of its deliveries may be sent. */
  dueAt: number;
}

export interface Claimed {
  id: string;
  webhook_id: string;
  event_id: string;
  type: DeliveryType;
  attempts: number;
  tried: number;
  body: string | null;
  lease: string;
}

/**
 * Every enabled endpoint with something pending, and when that is due. Walks the index from one endpoint to the next, so
 * a long queue of one costs nothing.
 */
const selectWaiting = prepared((db) => ({
  compile: () =>
    sql<Endpoint>`
      with recursive waiting(webhook_id) as (
        select min(webhook_id) from delivery where state = 'pending'
        union all
        select (select min(d.webhook_id) from delivery d where d.state = 'pending' and d.webhook_id > waiting.webhook_id)
        from waiting where waiting.webhook_id is not null
      )
      select w.id, w.url, w.ordering, w.secret_sealed as "secretSealed", w.old_secret_sealed as "oldSecretSealed",
        w.old_secret_until as "oldSecretUntil", w.failures, w.failing_since as "failingSince", w.probe_at as "probeAt",
        case when w.ordering = 'strict'
          then (select d.due_at from delivery d where d.webhook_id = w.id and d.state = 'pending'
            order by d.position, d.id limit 1)
          else (select min(d.due_at) from delivery d where d.webhook_id = w.id and d.state = 'pending')
        end as "dueAt"
      from waiting join webhook w on w.id = waiting.webhook_id where w.state = 'enabled'`.compile(
      db,
    ) as CompiledQuery<Endpoint>,
}));

export const listWaiting = (db: Db): Promise<Endpoint[]> => selectWaiting(db);

export interface Wanted {
  endpoint: Endpoint;
  room: number;
}

export interface ClaimParts {
  db: Db;
  dialect: DialectName;
  leaseMs: number;
}

export async function claimDeliveries(
  { db, dialect, leaseMs }: ClaimParts,
  wanted: Wanted[],
  lease: string,
  nowMs: number,
): Promise<Claimed[]> {
  const times = { nowMs, untilMs: nowMs + leaseMs };
  const strict = wanted.filter(({ endpoint }) => endpoint.ordering === 'strict');
  const others = wanted.filter(({ endpoint }) => endpoint.ordering !== 'strict');
  const claimed: Claimed[] = [];
  if (others.length > 0) {
    claimed.push(
      ...(dialect === 'postgres'
        ? await claimSkippingLocked(db, others, lease, times)
        : await claimOneByOne(db, others, lease, times)),
    );
  }
  for (const { endpoint } of strict) claimed.push(...(await claimFirst(db, endpoint.id, lease, times)));
  return claimed;
}

interface Times {
  nowMs: number;
  untilMs: number;
}

const returned = sql`delivery.id, delivery.webhook_id, delivery.event_id, delivery.type, delivery.attempts, delivery.tried,
  delivery.lease,
  coalesce(delivery.test_body, (select e.body from event e where e.id = delivery.event_id)) as body`;

/** By an array of ids: a join would have the planner read the whole table where it does not know how large that is. */
async function claimSkippingLocked(db: Db, wanted: Wanted[], lease: string, { nowMs, untilMs }: Times) {
  const json = JSON.stringify(wanted.map(({ endpoint, room }) => ({ id: endpoint.id, room })));
  const { rows } = await sql<Claimed>`
    with picked as materialized (
      select p.id from ${jsonRows('postgres', json, { id: 'text', room: 'bigint' })}
      cross join lateral (
        select c.id from delivery c
        where c.webhook_id = r.id and c.state = 'pending' and c.due_at <= ${nowMs}
        order by c.due_at, c.id limit r.room for update skip locked
      ) p
    )
    update delivery set lease = ${lease}, due_at = ${untilMs}
    where delivery.id = any(array(select picked.id from picked))
    returning ${returned}`.execute(db);
  return rows;
}

async function claimOneByOne(db: Db, wanted: Wanted[], lease: string, { nowMs, untilMs }: Times): Promise<Claimed[]> {
  return db.transaction().execute(async (tx) => {
    const claimed: Claimed[] = [];
    for (const { endpoint, room } of wanted) {
      const { rows } = await sql<Claimed>`
        update delivery set lease = ${lease}, due_at = ${untilMs}
        where delivery.id in (
          select c.id from delivery c
          where c.webhook_id = ${endpoint.id} and c.state = 'pending' and c.due_at <= ${nowMs}
          order by c.due_at, c.id limit ${room}
        )
        returning ${returned}`.execute(tx);
      claimed.push(...rows);
    }
    return claimed;
  });
}

/** The first in turn and no other: while it waits for its next attempt, or is being sent, all behind it wait. */
async function claimFirst(db: Db, webhookId: string, lease: string, { nowMs, untilMs }: Times): Promise<Claimed[]> {
  const { rows } = await sql<Claimed>`
    update delivery set lease = ${lease}, due_at = ${untilMs}
    where delivery.state = 'pending' and delivery.due_at <= ${nowMs} and delivery.id = (
      select c.id from delivery c where c.webhook_id = ${webhookId} and c.state = 'pending'
      order by c.position, c.id limit 1
    )
    returning ${returned}`.execute(db);
  return rows;
}

/** Not sent after all: due again at once, as if it had never been taken. */
export async function releaseDeliveries(db: Db, claimed: Claimed[], nowMs: number): Promise<void> {
  if (claimed.length === 0) return;
  const ids = claimed.map(({ id }) => id);
  const leases = [...new Set(claimed.map(({ lease }) => lease))];
  await db
    .updateTable('delivery')
    .set({ lease: null, due_at: nowMs })
    .where('id', 'in', ids)
    .where('lease', 'in', leases)
    .where('state', '=', 'pending')
    .execute();
}

/** After a crash, where there is only one process: what it was sending is nobody's. */
export async function releaseAll(db: Db, nowMs: number): Promise<void> {
  await db
    .updateTable('delivery')
    .set({ lease: null, due_at: nowMs })
    .where('state', '=', 'pending')
    .where('lease', 'is not', null)
    .execute();
}
