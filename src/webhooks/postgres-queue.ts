// The queue on PostgreSQL, on connections of its own. Several processes claim at once, each skipping what another is
// about to take. A round trip costs more than the work it asks for, so each operation is one statement.
import { CompiledQuery } from 'kysely';
import type { Db } from '../db/database.ts';
import { openQueueDatabase } from '../db/postgres-pool.ts';
import { postgresRows } from '../db/prepared.ts';
import {
  type Claimed,
  type ClaimRequest,
  type DeliveryLease,
  deliveryChanges,
  type HealthChange,
  insertAttempts,
  leaseFields,
  leasesOf,
  markHealth,
  type Outcome,
  outcomeFields,
} from './delivery-queue.ts';
import { opensAfter, wantsFor } from './endpoint-health.ts';

const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1);

export function postgresQueue(databaseUrl: string, onConnectionLost: (error: Error) => void) {
  const db = openQueueDatabase(databaseUrl, onConnectionLost);
  return {
    // Other processes may hold leases; those of a process that crashed run out.
    recover: async () => {},
    claim: (request: ClaimRequest) => claim(db, request),
    release: (leases: readonly DeliveryLease[]) => release(db, leases),
    renew: (leases: readonly DeliveryLease[], untilMs: number) => renew(db, leases, untilMs),
    complete: (outcomes: readonly Outcome[]) => complete(db, outcomes),
    markHealth: (changes: HealthChange[], nowMs: number, random: number) => markHealth(db, changes, nowMs, random),
    close: () => db.destroy(),
  };
}

/**
 * One statement: which endpoints have something pending, how many deliveries each may have, which are claimed, and what
 * is needed to send them. It walks the index from one endpoint to the next, so a long queue of one endpoint costs
 * nothing.
 *
 * $1 now, $2 how many for endpoints with something under way, $3 to $5 for all others, $6 what accounts have under way and
 * the endpoint to start behind, $7 how much all accounts together may have, $8 lease, $9 its end, $10 the most of an account.
 *
 * A claim never waits for a lock, so it is part of no deadlock. The first delivery of a strict queue is found first and
 * locked then: where another process has it locked the whole queue is left out, as the one behind must not be claimed.
 * The update finds the picked rows by `ctid`, not by an index, so its cost does not grow with the table.
 */
const claiming = `
  with recursive waiting(id) as (
    (select webhook_id from delivery where state = 'pending' order by webhook_id limit 1)
    union all
    select (select d.webhook_id from delivery d where d.state = 'pending' and d.webhook_id > waiting.id
      order by d.webhook_id limit 1)
    from waiting where waiting.id is not null
  ),
  busy as materialized (
    select * from json_to_recordset($2::json) as b(id text, well bigint, failing bigint, probing bigint)
  ),
  endpoint as materialized (
    select w.id, w.account_id, w.url, w.ordering, w.secret_sealed, w.old_secret_sealed, w.old_secret_until, w.failures,
      case
        when w.ordering = 'strict' and busy.id is not null then 0
        when w.failures >= ${opensAfter} then
          case when coalesce(w.probe_at, 0) <= $1::bigint then coalesce(busy.probing, $5::bigint) else 0 end
        when w.failures > 0 then coalesce(busy.failing, $4::bigint)
        else coalesce(busy.well, $3::bigint)
      end as want
    from waiting join webhook w on w.id = waiting.id left join busy on busy.id = w.id
    where w.state = 'enabled'
  ),
  known as materialized (
    select * from json_to_recordset($6::json) as k(id text, taken bigint, after text)
  ),
  account as materialized (
    select a.id, coalesce(known.taken, 0) as taken, coalesce(known.after, '') as after
    from (select account_id as id from endpoint where want > 0 union select id from known) a
      left join known on known.id = a.id
  ),
  picked as materialized (
    select of.tid from account cross join lateral (
    select p.tid from (
      select * from endpoint where endpoint.account_id = account.id and endpoint.want > 0
      order by (endpoint.id > account.after) desc, endpoint.id
    ) endpoint cross join lateral (
      select f.tid from (
        select c.ctid as tid from delivery c
        where endpoint.ordering <> 'strict' and c.webhook_id = endpoint.id and c.state = 'pending'
          and c.due_at <= $1::bigint and c.lease_until <= $1::bigint
        order by c.due_at, c.id limit endpoint.want for update skip locked
      ) f
      union all
      select l.tid from (
        select c.id from delivery c
        where endpoint.ordering = 'strict' and c.webhook_id = endpoint.id and c.state = 'pending'
        order by c.position, c.id limit least(endpoint.want, 1)
      ) h cross join lateral (
        select c.ctid as tid from delivery c
        where c.id = h.id and c.state = 'pending' and c.due_at <= $1::bigint and c.lease_until <= $1::bigint
        for update skip locked
      ) l
    ) p
    limit greatest(0, least($10::bigint, greatest(1, $7::bigint / ((select count(*) from account) + 1)) - account.taken))
    ) of
  ),
  taken as (
    update delivery d set lease = $8::text, lease_until = $9::bigint
    where d.ctid = any(array(select picked.tid from picked))
      and d.state = 'pending' and d.due_at <= $1::bigint and d.lease_until <= $1::bigint
    returning d.id, d.webhook_id, d.event_id, d.type, d.attempts, d.tried, d.lease, d.test_body
  )
  select t.id, t.webhook_id, t.event_id, t.type, t.attempts, t.tried, t.lease,
    coalesce(t.test_body, (select event.body from event where event.id = t.event_id)) as body,
    e.account_id, e.url, e.ordering, e.secret_sealed, e.old_secret_sealed, e.old_secret_until, e.failures
  from taken t join endpoint e on e.id = t.webhook_id`;

async function claim(db: Db, request: ClaimRequest): Promise<Claimed[]> {
  const { loads, most, atOnce, accounts, lease, nowMs, untilMs } = request;
  const idle = wantsFor(undefined, nowMs);
  const busy = [...loads].map(([id, load]) => ({ id, ...wantsFor(load, nowMs) }));
  const known = JSON.stringify([...accounts].map(([id, load]) => ({ id, ...load })));
  const wants = [JSON.stringify(busy), idle.well, idle.failing, idle.probing];
  const parameters = [nowMs, ...wants, known, most, lease, untilMs, atOnce];
  return (await db.executeQuery<Claimed>(CompiledQuery.raw(claiming, parameters) as CompiledQuery<Claimed>)).rows;
}

const leased = `from ${postgresRows('$1', leaseFields)}
  where d.id = r.id and d.lease = r.lease and d.state = 'pending'`;
const releasing = `update delivery as d set lease = null, lease_until = 0 ${leased}`;
const renewing = `update delivery as d set lease_until = $2::bigint ${leased}`;

async function release(db: Db, leases: readonly DeliveryLease[]): Promise<void> {
  if (leases.length === 0) return;
  await db.executeQuery(CompiledQuery.raw(releasing, [leasesOf(leases.toSorted(byId))]));
}

async function renew(db: Db, leases: readonly DeliveryLease[], untilMs: number): Promise<void> {
  if (leases.length === 0) return;
  await db.executeQuery(CompiledQuery.raw(renewing, [leasesOf(leases.toSorted(byId)), untilMs]));
}

/**
 * The array of ids keeps the planner on the primary key, however large the table is. Both the index and the outcomes
 * are in the order of ids, so all that write several deliveries lock them in that order.
 */
const completing = `
  with r as materialized (select * from ${postgresRows('$1', outcomeFields)}),
  done as (
    update delivery d set ${deliveryChanges} from r
    where d.id = r.id and d.lease = r.lease and d.id = any(array(select id from r)) returning d.id
  )
  ${insertAttempts} from r join done on done.id = r.id`;

async function complete(db: Db, outcomes: readonly Outcome[]): Promise<void> {
  await db.executeQuery(CompiledQuery.raw(completing, [JSON.stringify(outcomes.toSorted(byId))]));
}
