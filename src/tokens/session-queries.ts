// Sessions of the console in the database. A session belongs to the token that signed in: it can do what that token can,
// and ends with it.
import type { Selectable } from 'kysely';
import type { Caller } from '../contract/scopes.ts';
import type { Session } from '../contract/sessions.ts';
import type { Db } from '../db/database.ts';
import { newestFirst, type Page } from '../db/keyset-page.ts';
import type { Tables } from '../db/tables.ts';
import { isoTime } from '../lib/iso-time.ts';
import { publish } from '../signals/signals.ts';

export type SessionRow = Selectable<Tables['console_session']>;
type NamedSession = SessionRow & { token_name: string; scopes: string };

export async function insertSession(tx: Db, row: SessionRow): Promise<void> {
  await tx.insertInto('console_session').values(row).execute();
}

const valid = (db: Db, nowMs: number) =>
  db
    .selectFrom('console_session')
    .innerJoin('token', 'token.id', 'console_session.token_id')
    .where('console_session.ended_at', 'is', null)
    .where('console_session.expires_at', '>', nowMs)
    .where('token.revoked_at', 'is', null)
    .where((e) => e.or([e('token.expires_at', 'is', null), e('token.expires_at', '>', nowMs)]));

/** The session with this cookie, if it can still be used. */
export async function findSessionByCookie(db: Db, hash: string, nowMs: number): Promise<SessionRow | undefined> {
  return valid(db, nowMs).selectAll('console_session').where('cookie_hash', '=', hash).executeTakeFirst();
}

/** The hash of the token that a session stands for; undefined: the session is over. */
export async function findTokenHashOf(db: Db, sessionId: string, nowMs: number): Promise<string | undefined> {
  const found = await valid(db, nowMs)
    .select('token.hash')
    .where('console_session.id', '=', sessionId)
    .executeTakeFirst();
  return found?.hash;
}

export async function listValidSessions(db: Db, ids: string[], nowMs: number): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await valid(db, nowMs).select('console_session.id').where('console_session.id', 'in', ids).execute();
  return rows.map(({ id }) => id);
}

export async function markSessionUsed(tx: Db, id: string, nowMs: number, expiresAt: number): Promise<void> {
  await tx
    .updateTable('console_session')
    .set({ last_used_at: nowMs, expires_at: expiresAt })
    .where('id', '=', id)
    .execute();
}

/** Ends sessions and what follows with them. */
async function endSessions(tx: Db, column: 'id' | 'token_id', ids: string[], nowMs: number): Promise<void> {
  if (ids.length === 0) return;
  const ended = await tx
    .updateTable('console_session')
    .set({ ended_at: nowMs })
    .where(column, 'in', ids)
    .where('ended_at', 'is', null)
    .returning('id')
    .execute();
  for (const { id } of ended) publish(tx, 'tokens', { tokenId: id });
}

export const endSession = (tx: Db, id: string, nowMs: number): Promise<void> => endSessions(tx, 'id', [id], nowMs);
export const endSessionsOf = (tx: Db, tokenIds: string[], nowMs: number): Promise<void> =>
  endSessions(tx, 'token_id', tokenIds, nowMs);

/** Those that can still be used: the caller's own, and those of the tokens among `tokenIds`; null: of all the account. */
export async function listSessions(
  db: Db,
  { accountId, tokenId }: Caller,
  seesAll: boolean,
  nowMs: number,
  page: Page,
): Promise<NamedSession[]> {
  let query = db
    .selectFrom('console_session')
    .selectAll()
    .select((e) => [
      e.selectFrom('token').select('name').whereRef('token.id', '=', 'token_id').as('token_name'),
      e.selectFrom('token').select('scopes').whereRef('token.id', '=', 'token_id').as('scopes'),
    ])
    .where('account_id', '=', accountId)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', nowMs);
  if (!seesAll) query = query.where('token_id', '=', tokenId);
  return (await newestFirst(query, page).execute()) as NamedSession[];
}

export async function findSession(db: Db, { accountId }: Caller, id: string): Promise<NamedSession | undefined> {
  const row = await db
    .selectFrom('console_session')
    .innerJoin('token', 'token.id', 'console_session.token_id')
    .selectAll('console_session')
    .select(['token.name as token_name', 'token.scopes'])
    .where('console_session.account_id', '=', accountId)
    .where('console_session.id', '=', id)
    .where('console_session.ended_at', 'is', null)
    .executeTakeFirst();
  return row;
}

export async function deleteSessionsBefore(db: Db, ms: number): Promise<void> {
  await db
    .deleteFrom('console_session')
    .where((e) => e.or([e('expires_at', '<', ms), e('ended_at', '<', ms)]))
    .execute();
}

export function presentSession(row: NamedSession, caller: Caller): Session {
  return {
    id: row.id,
    token_id: row.token_id,
    token_name: row.token_name,
    address: row.address,
    user_agent: row.user_agent,
    current: row.id === caller.sessionId,
    created_at: isoTime(row.created_at),
    last_used_at: isoTime(row.last_used_at),
    expires_at: isoTime(row.expires_at),
  };
}
