// The issuer's queries. A process leases a domain before it gets a certificate for it. Each lease has an owner of its
// own, never used again, and every update is guarded by it: a process that has lost its lease can change nothing.
import { sql, type UpdateObject } from 'kysely';
import type { Db } from '../db/database.ts';
import { databaseNow } from '../db/database-clock.ts';
import type { Tables } from '../db/tables.ts';
import { keyOf } from '../environments/environment-key.ts';
import { publish } from '../signals/signals.ts';
import { markRoutingChanged } from '../traffic/traffic-queries.ts';
import type { CertificateRow, DomainRow } from './domain-queries.ts';

/** Another process has leased the domain, or the domain is gone. */
export class CertificateLeaseLost extends Error {}

export interface ClaimRoom {
  /** How many domains more. */
  total: number;
  /** How many of one account at the same time, and how many each has now. */
  each: number;
  running: ReadonlyMap<string, number>;
}

const mostAccounts = 500;

/** Leases domains that are due: accounts take turns, and of each the longest due comes first. */
export async function claimDue(
  db: Db,
  owner: () => string,
  { total, each, running }: ClaimRoom,
  nowMs: number,
  leaseMs: number,
): Promise<DomainRow[]> {
  const leaseNow = databaseNow(db, nowMs);
  const turns = db
    .selectFrom('domain')
    .select(['id', 'account_id', 'next_attempt_at'])
    .select((e) =>
      e.fn
        .agg<number>('row_number')
        .over((over) => over.partitionBy('account_id').orderBy('next_attempt_at').orderBy('id'))
        .as('turn'),
    )
    .where('next_attempt_at', '<=', nowMs)
    .where('lease_until', '<=', leaseNow);
  const inTurn = await db
    .selectFrom(turns.as('due'))
    .select(['id', 'account_id', 'turn'])
    .where('turn', '<=', each)
    .orderBy('turn')
    .orderBy('next_attempt_at')
    .limit(mostAccounts)
    .execute();
  const due = inTurn.filter(({ account_id, turn }) => Number(turn) + (running.get(account_id) ?? 0) <= each);
  const claimed: DomainRow[] = [];
  for (const { id } of due.slice(0, total)) {
    const row = await db
      .updateTable('domain')
      .set({
        lease_owner: owner(),
        lease_until: sql<number>`${leaseNow} + ${leaseMs}`,
        // During a renewal the domain stays active: it still serves its current certificate.
        state: sql<DomainRow['state']>`case when certificate_id is null then 'issuing' else state end`,
        version: sql<number>`case when certificate_id is null then version + 1 else version end`,
      })
      .where('id', '=', id)
      .where('next_attempt_at', '<=', nowMs)
      .where('lease_until', '<=', leaseNow)
      .returningAll()
      .executeTakeFirst();
    if (!row) continue;
    claimed.push(row);
    publishChange(db, row);
  }
  return claimed;
}

export async function extendLease(db: Db, row: DomainRow, nowMs: number, leaseMs: number): Promise<void> {
  await guarded(db, row, { lease_until: sql<number>`${databaseNow(db, nowMs)} + ${leaseMs}` });
}

/** Called before the order is acted upon, so that it can be found again after a crash. */
export async function saveOrder(
  db: Db,
  row: DomainRow,
  order: Pick<DomainRow, 'order_directory' | 'order_url' | 'order_key_sealed'>,
): Promise<void> {
  await guarded(db, row, order);
}

/** The attempt ended without a result: the domain is due again at once. */
export async function release(db: Db, row: DomainRow): Promise<void> {
  await guarded(db, row, { lease_owner: null, lease_until: 0 });
}

/** For SQLite, which has one process: leases that it finds at its start belong to a process that died. */
export async function releaseAll(db: Db): Promise<void> {
  await db.updateTable('domain').set({ lease_owner: null, lease_until: 0 }).where('lease_until', '>', 0).execute();
}

export async function markFailed(
  db: Db,
  row: DomainRow,
  failure: { message: string; nextAttemptAt: number; waitUntil: number | null; nowMs: number },
): Promise<void> {
  await guarded(
    db,
    row,
    {
      state: row.certificate_id === null ? 'failed' : 'active',
      last_error: failure.message,
      failures: row.failures + 1,
      next_attempt_at: failure.nextAttemptAt,
      wait_until: failure.waitUntil,
      lease_owner: null,
      lease_until: 0,
      updated_at: failure.nowMs,
    },
    'visible',
  );
  publishChange(db, row);
}

/** Before the attempt is written as failed, which makes it visible. */
export async function saveTxtFound(db: Db, row: DomainRow, found: string[] | null): Promise<void> {
  await guarded(db, row, { txt_found: found && JSON.stringify(found) });
}

/** From now on the hostname is routed. */
export async function markProved(db: Db, row: DomainRow): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await guarded(tx, row, { proof: 'txt_record' }, 'visible');
    await markRoutingChanged(tx, keyOf(row));
    publishChange(tx, row);
  });
}

/** The domain is proved, and the authority gives no certificate for such names: nothing is left to do. */
export async function markCertificateless(db: Db, row: DomainRow, nowMs: number): Promise<void> {
  const settled = { state: 'active', last_error: null, failures: 0, next_attempt_at: null, wait_until: null } as const;
  await guarded(db, row, { ...settled, lease_owner: null, lease_until: 0, updated_at: nowMs }, 'visible');
  publishChange(db, row);
}

/** Changes only when the certificate is due again. */
export async function reschedule(
  db: Db,
  row: DomainRow,
  certificate: Pick<CertificateRow, 'id' | 'renew_at' | 'ari_ask_at'>,
): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const next = { next_attempt_at: dueAt(certificate), lease_owner: null, lease_until: 0 };
    await guarded(tx, row, next, 'visible');
    const { id, renew_at, ari_ask_at } = certificate;
    await tx.updateTable('certificate').set({ renew_at, ari_ask_at }).where('id', '=', id).execute();
  });
}

const dueAt = ({ renew_at, ari_ask_at }: Pick<CertificateRow, 'renew_at' | 'ari_ask_at'>) =>
  Math.min(renew_at, ari_ask_at ?? renew_at);

/** The domain serves the new certificate once this is committed. Keeps the previous certificate, deletes older ones. */
export async function storeCertificate(tx: Db, row: DomainRow, certificate: CertificateRow): Promise<DomainRow> {
  const saved = await guarded(
    tx,
    row,
    {
      state: 'active',
      proof: row.proof ?? 'certificate',
      certificate_id: certificate.id,
      last_error: null,
      failures: 0,
      next_attempt_at: dueAt(certificate),
      wait_until: null,
      renew_asked: 0,
      lease_owner: null,
      lease_until: 0,
      order_directory: null,
      order_url: null,
      order_key_sealed: null,
      updated_at: certificate.created_at,
    },
    'visible',
  );
  await tx.insertInto('certificate').values(certificate).execute();
  await tx
    .deleteFrom('certificate')
    .where('domain_id', '=', row.id)
    .where('id', 'not in', [certificate.id, row.certificate_id ?? ''])
    .execute();
  if (row.certificate_id === null) await markRoutingChanged(tx, keyOf(row));
  publish(tx, 'domains', { hostname: row.hostname });
  publishChange(tx, row);
  return saved;
}

export async function findFullCertificate(db: Db, id: string | null): Promise<CertificateRow | null> {
  if (id === null) return null;
  const row = await db.selectFrom('certificate').selectAll().where('id', '=', id).executeTakeFirst();
  return row ?? null;
}

/** A change that API users can see also raises the version. */
async function guarded(
  db: Db,
  { id, lease_owner }: DomainRow,
  changed: UpdateObject<Tables, 'domain'>,
  kind: 'visible' | 'internal' = 'internal',
): Promise<DomainRow> {
  const row = await db
    .updateTable('domain')
    .set((e) => ({ ...changed, ...(kind === 'visible' && { version: e('version', '+', 1) }) }))
    .where('id', '=', id)
    .where('lease_owner', '=', lease_owner)
    .returningAll()
    .executeTakeFirst();
  if (!row) throw new CertificateLeaseLost();
  return row;
}

function publishChange(db: Db, row: DomainRow): void {
  publish(db, 'changes', { accountId: row.account_id, projectId: row.project_id, environment: row.environment });
}
