// The queue on SQLite. There is one process, and a statement costs little there: see which endpoints have something
// pending, then claim for one after the other, in one transaction.
import { CompiledQuery, sql } from 'kysely';
import type { Db } from '../db/database.ts';
import { prepared, runCompiled, sqliteRows } from '../db/prepared.ts';
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
  type Receiver,
  shareOf,
} from './delivery-queue.ts';
import { longestProbeWaitMs, wantFor } from './endpoint-health.ts';

export function sqliteQueue(db: Db) {
  return {
    recover: (nowMs: number, longestDelayMs: number) => recover(db, nowMs, longestDelayMs),
    claim: (request: ClaimRequest) => claim(db, request),
    release: (leases: readonly DeliveryLease[]) => release(db, leases),
    renew: (leases: readonly DeliveryLease[], untilMs: number) => renew(db, leases, untilMs),
    complete: (outcomes: readonly Outcome[]) => complete(db, outcomes),
    markHealth: (changes: HealthChange[], nowMs: number, random: number) => markHealth(db, changes, nowMs, random),
    // The connections belong to the whole process.
    close: async () => {},
  };
}

async function recover(db: Db, nowMs: number, longestDelayMs: number): Promise<void> {
  await sql`update delivery set lease = null, lease_until = 0 where state = 'pending' and lease is not null`.execute(
    db,
  );
  // One that was not tried yet is due at once.
  await sql`update delivery set due_at = ${nowMs} where state = 'pending' and due_at > ${nowMs}
    and (tried = 0 or due_at > ${nowMs + longestDelayMs})`.execute(db);
  await sql`update webhook set probe_at = ${nowMs} where probe_at > ${nowMs + longestProbeWaitMs}`.execute(db);
}

interface WaitingEndpoint extends Receiver {
  id: string;
  probe_at: number | null;
}

/**
 * Every enabled endpoint with something due, in the order of their ids. The query walks the index from one endpoint to the
 * next, so a long queue of one endpoint costs nothing. Parameters: now, now.
 */
const selectWaiting = prepared((db) => ({
  compile: () =>
    sql<WaitingEndpoint>`
      with recursive waiting(id) as (
        select min(webhook_id) from delivery where state = 'pending'
        union all
        select (select min(d.webhook_id) from delivery d where d.state = 'pending' and d.webhook_id > waiting.id)
        from waiting where waiting.id is not null
      )
      select w.id, w.account_id, w.url, w.ordering, w.secret_sealed, w.old_secret_sealed, w.old_secret_until, w.failures, w.probe_at
      from waiting join webhook w on w.id = waiting.id where w.state = 'enabled' and exists (
        select 1 from delivery d where d.webhook_id = w.id and d.state = 'pending' and d.due_at <= ${0} and d.lease_until <= ${0}
      ) order by w.id`.compile(db) as CompiledQuery<WaitingEndpoint>,
}));

async function claim(db: Db, request: ClaimRequest): Promise<Claimed[]> {
  const waiting = await selectWaiting(db, request.nowMs, request.nowMs);
  const byAccount = Map.groupBy(
    waiting.filter((endpoint) => wantOf(endpoint, request) > 0),
    ({ account_id }) => account_id,
  );
  if (byAccount.size === 0) return [];
  const share = shareOf(request.most, new Set([...byAccount.keys(), ...request.accounts.keys()]).size);
  return db.transaction().execute(async (tx) => {
    const claimed: Claimed[] = [];
    for (const [account, endpoints] of byAccount) {
      const { taken, after } = request.accounts.get(account) ?? { taken: 0, after: '' };
      let left = Math.min(share - taken, request.atOnce);
      const first = endpoints.findIndex(({ id }) => id > after);
      for (const endpoint of first > 0 ? [...endpoints.slice(first), ...endpoints.slice(0, first)] : endpoints) {
        if (left <= 0) break;
        const found = await claimFor(tx, endpoint, Math.min(wantOf(endpoint, request), left), request);
        claimed.push(...found);
        left -= found.length;
      }
    }
    return claimed;
  });
}

function wantOf({ id, ordering, failures, probe_at }: WaitingEndpoint, { loads, nowMs }: ClaimRequest): number {
  return wantFor({ failures, probeAt: probe_at }, ordering === 'strict', loads.get(id), nowMs);
}

/** Parameters: the lease, its end, the webhook, those of `which`, now, now. */
const claimOf = (which: string) => `
  update delivery set lease = ?, lease_until = ?
  where delivery.id in (select c.id from delivery c where c.webhook_id = ? and c.state = 'pending' ${which})
    and delivery.due_at <= ? and delivery.lease_until <= ?
  returning delivery.id, delivery.webhook_id, delivery.event_id, delivery.type, delivery.attempts, delivery.tried,
    delivery.lease, coalesce(delivery.test_body, (select e.body from event e where e.id = delivery.event_id)) as body`;
const claimFirst = claimOf('order by c.position, c.id limit 1');
const claimDue = claimOf('and c.due_at <= ? and c.lease_until <= ? order by c.due_at, c.id limit ?');

async function claimFor(
  tx: Db,
  { id, probe_at: _, ...receiver }: WaitingEndpoint,
  want: number,
  { nowMs, lease, untilMs }: ClaimRequest,
): Promise<Claimed[]> {
  const claiming =
    receiver.ordering === 'strict'
      ? CompiledQuery.raw(claimFirst, [lease, untilMs, id, nowMs, nowMs])
      : CompiledQuery.raw(claimDue, [lease, untilMs, id, nowMs, nowMs, want, nowMs, nowMs]);
  const rows = await runCompiled(tx, claiming as CompiledQuery<Omit<Claimed, keyof Receiver>>);
  return rows.map((row) => ({ ...row, ...receiver }));
}

const leased = `from ${sqliteRows(leaseFields)} where d.id = r.id and d.lease = r.lease and d.state = 'pending'`;
const releasing = `update delivery as d set lease = null, lease_until = 0 ${leased}`;
const renewing = `update delivery as d set lease_until = ? ${leased}`;

async function release(db: Db, leases: readonly DeliveryLease[]): Promise<void> {
  if (leases.length === 0) return;
  await db.executeQuery(CompiledQuery.raw(releasing, [leasesOf(leases)]));
}

async function renew(db: Db, leases: readonly DeliveryLease[], untilMs: number): Promise<void> {
  if (leases.length === 0) return;
  await db.executeQuery(CompiledQuery.raw(renewing, [untilMs, leasesOf(leases)]));
}

const outcomeRows = sqliteRows(outcomeFields);
const addingAttempts = `${insertAttempts} from ${outcomeRows} join delivery d on d.id = r.id and d.lease = r.lease`;
const changingDeliveries = `update delivery as d set ${deliveryChanges}
  from ${outcomeRows} where d.id = r.id and d.lease = r.lease`;

async function complete(db: Db, outcomes: readonly Outcome[]): Promise<void> {
  const json = JSON.stringify(outcomes);
  await db.transaction().execute(async (tx) => {
    await runCompiled(tx, CompiledQuery.raw(addingAttempts, [json]));
    await runCompiled(tx, CompiledQuery.raw(changingDeliveries, [json]));
  });
}
