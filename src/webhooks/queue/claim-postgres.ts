// One statement: who is waiting, how many each may have, what is taken, and what is needed to send it. It walks the
// index from one endpoint to the next, so a long queue of one costs nothing.
import { CompiledQuery } from 'kysely';
import type { Db } from '../../db/database.ts';
import { opensAfter, wantsFor } from '../endpoints/health.ts';
import type { Claimed, Wanted } from './claim.ts';

/**
 * $1 now, $2 how many for those who have something under way, $3 to $5 for the others, $6 endpoint to begin behind,
 * $7 limit, $8 lease, $9 its end.
 *
 * Two processes that want the head of a strict queue wait for each other, and the second finds it taken: were it to skip
 * what is locked, it would take the one behind. What was picked is found again by where it is, not by any index: how
 * large the table is has no say in that.
 */
const statement = `
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
    select w.id, w.url, w.ordering, w.secret_sealed, w.old_secret_sealed, w.old_secret_until, w.failures,
      case
        when w.ordering = 'strict' and busy.id is not null then 0
        when w.failures >= ${opensAfter} then
          case when coalesce(w.probe_at, 0) <= $1::bigint then coalesce(busy.probing, $5::bigint) else 0 end
        when w.failures > 0 then coalesce(busy.failing, $4::bigint)
        else coalesce(busy.well, $3::bigint)
      end as want
    from waiting join webhook w on w.id = waiting.id left join busy on busy.id = w.id
    where w.state = 'enabled'
    order by (w.id > $6::text) desc, w.id
  ),
  picked as materialized (
    select p.tid from endpoint cross join lateral (
      select f.tid from (
        select c.ctid as tid from delivery c
        where endpoint.ordering <> 'strict' and c.webhook_id = endpoint.id and c.state = 'pending'
          and c.due_at <= $1::bigint and c.lease_until <= $1::bigint
        order by c.due_at, c.id limit endpoint.want for update skip locked
      ) f
      union all
      select h.tid from (
        select c.ctid as tid, c.due_at, c.lease_until from delivery c
        where endpoint.ordering = 'strict' and c.webhook_id = endpoint.id and c.state = 'pending'
        order by c.position, c.id limit least(endpoint.want, 1)
      ) h where h.due_at <= $1::bigint and h.lease_until <= $1::bigint
    ) p
    where endpoint.want > 0
    limit $7::bigint
  ),
  taken as (
    update delivery d set lease = $8::text, lease_until = $9::bigint
    where d.ctid = any(array(select picked.tid from picked))
      and d.state = 'pending' and d.due_at <= $1::bigint and d.lease_until <= $1::bigint
    returning d.id, d.webhook_id, d.event_id, d.type, d.attempts, d.tried, d.lease, d.test_body
  )
  select t.id, t.webhook_id, t.event_id, t.type, t.attempts, t.tried, t.lease,
    coalesce(t.test_body, (select event.body from event where event.id = t.event_id)) as body,
    e.url, e.ordering, e.secret_sealed, e.old_secret_sealed, e.old_secret_until, e.failures
  from taken t join endpoint e on e.id = t.webhook_id`;

export async function claimAtOnce(db: Db, wanted: Wanted): Promise<Claimed[]> {
  const { loads, limit, after, lease, nowMs, untilMs } = wanted;
  const idle = wantsFor(undefined, nowMs);
  const busy = [...loads].map(([id, load]) => ({ id, ...wantsFor(load, nowMs) }));
  const parameters = [nowMs, JSON.stringify(busy), idle.well, idle.failing, idle.probing, after, limit, lease, untilMs];
  return (await db.executeQuery<Claimed>(CompiledQuery.raw(statement, parameters) as CompiledQuery<Claimed>)).rows;
}
