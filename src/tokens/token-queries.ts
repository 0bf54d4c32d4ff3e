// Tokens in the database, and when they were last used.
import { type Selectable, sql } from 'kysely';
import type { Caller, Scope } from '../contract/scopes.ts';
import type { Token } from '../contract/tokens.ts';
import { type Db, dialectOf } from '../db/database.ts';
import { deleteInSlices } from '../db/delete-slice.ts';
import type { Page } from '../db/keyset-page.ts';
import { prepared } from '../db/prepared.ts';
import { type Found, searchNewestFirst } from '../db/search.ts';
import type { Tables } from '../db/tables.ts';
import type { FoundToken } from '../http/api/gate.ts';
import { Memo } from '../lib/bounded-cache.ts';
import type { Clock } from '../lib/clock.ts';
import { isoTime, isoTimeOrNull } from '../lib/iso-time.ts';
import { listValidSessions } from './session-queries.ts';

export type TokenRow = Selectable<Tables['token']> & { project_ids: string[] | null };

const selectByHash = prepared((db) =>
  db
    .selectFrom('token')
    .select(['id', 'account_id', 'scopes', 'bound', 'expires_at', 'revoked_at'])
    .where('hash', '=', ''),
);

export async function findTokenByHash(db: Db, hash: string): Promise<FoundToken | undefined> {
  const [row] = await selectByHash(db, hash);
  if (!row) return undefined;
  return {
    tokenId: row.id,
    accountId: row.account_id,
    scopes: scopeSet(row.scopes),
    projectIds: row.bound ? (await projectIdsOf(db, [row.id])).get(row.id)! : null,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
  };
}

const scopeSets = new Memo<ReadonlySet<Scope>>(1000);

/** Few different lists of scopes are in use, so each is parsed only once. */
function scopeSet(json: string): ReadonlySet<Scope> {
  return scopeSets.get(json, () => new Set(JSON.parse(json) as Scope[]));
}

async function projectIdsOf(db: Db, tokenIds: string[]): Promise<Map<string, string[]>> {
  const rows = await db
    .selectFrom('token_project')
    .selectAll()
    .where('token_id', 'in', tokenIds)
    .orderBy('project_id')
    .execute();
  const byToken = new Map<string, string[]>(tokenIds.map((id) => [id, []]));
  for (const row of rows) byToken.get(row.token_id)!.push(row.project_id);
  return byToken;
}

async function withProjects(db: Db, rows: Selectable<Tables['token']>[]): Promise<TokenRow[]> {
  const bound = rows.filter((row) => row.bound).map((row) => row.id);
  const projects = bound.length > 0 ? await projectIdsOf(db, bound) : new Map<string, string[]>();
  return rows.map((row) => ({ ...row, project_ids: projects.get(row.id) ?? null }));
}

/**
 * The caller sees the tokens of its account. If it is bound to projects, it sees only tokens bound to no other ones.
 */
function visibleTokens(db: Db, caller: Caller) {
  const query = db.selectFrom('token').selectAll().where('account_id', '=', caller.accountId);
  const own = caller.projectIds;
  if (own === null) return query;
  return query.where('bound', '=', 1).where((e) =>
    e.not(
      e.exists(
        e
          .selectFrom('token_project')
          .select('token_id')
          .whereRef('token_project.token_id', '=', 'token.id')
          .where('token_project.project_id', 'not in', own.length > 0 ? own : ['']),
      ),
    ),
  );
}

export async function listTokens(
  db: Db,
  caller: Caller,
  search: string | undefined,
  page: Page,
): Promise<Found<TokenRow>> {
  const { rows, searchedTo } = await searchNewestFirst(
    visibleTokens(db, caller),
    search,
    [sql`token.name`, sql`token.scopes`, sql`token.id`],
    page,
  );
  return { rows: await withProjects(db, rows), searchedTo };
}

export async function findToken(db: Db, caller: Caller, id: string): Promise<TokenRow | undefined> {
  const row = await visibleTokens(db, caller).where('id', '=', id).executeTakeFirst();
  return row && (await withProjects(db, [row]))[0];
}

/** Which of these tokens and sessions can still be used. */
export async function listValidTokens(db: Db, ids: string[], nowMs: number): Promise<string[]> {
  const sessions = ids.filter((id) => id.startsWith('ses_'));
  const rows = await db
    .selectFrom('token')
    .select('id')
    .where('id', 'in', ids)
    .where('revoked_at', 'is', null)
    .where((e) => e.or([e('expires_at', 'is', null), e('expires_at', '>', nowMs)]))
    .execute();
  return [...rows.map(({ id }) => id), ...(await listValidSessions(db, sessions, nowMs))];
}

export async function insertToken(db: Db, row: TokenRow): Promise<void> {
  const { project_ids, ...token } = row;
  await db.insertInto('token').values(token).execute();
  if (project_ids !== null) {
    await db
      .insertInto('token_project')
      .values(project_ids.map((project_id) => ({ token_id: row.id, project_id })))
      .execute();
  }
}

/** How long a token may be used, as it stands. Until the transaction ends nobody revokes it. */
export async function lockLifetime(
  tx: Db,
  id: string,
): Promise<Pick<TokenRow, 'expires_at' | 'revoked_at'> | undefined> {
  const query = tx.selectFrom('token').select(['expires_at', 'revoked_at']).where('id', '=', id);
  return (dialectOf(tx) === 'postgres' ? query.forShare() : query).executeTakeFirst();
}

/** Returns the ids of those that were not revoked before. */
export async function markTokensRevoked(tx: Db, ids: string[], nowMs: number): Promise<string[]> {
  const rows = await tx
    .updateTable('token')
    .set((e) => ({ revoked_at: nowMs, version: e('version', '+', 1) }))
    .where('id', 'in', ids)
    .where('revoked_at', 'is', null)
    .returning('id')
    .execute();
  return rows.map(({ id }) => id);
}

/** The tokens that these made, revoked or not. */
export async function listChildren(tx: Db, ids: string[]): Promise<string[]> {
  const rows = await tx.selectFrom('token').select('id').where('parent_id', 'in', ids).orderBy('id').execute();
  return rows.map(({ id }) => id);
}

/** Those that made others stay until these have gone. */
export async function deleteEndedTokensBefore(db: Db, ms: number): Promise<void> {
  await deleteInSlices(
    db,
    'token',
    sql`kind = 'user' and (revoked_at < ${ms} or expires_at < ${ms})
      and not exists (select 1 from token child where child.parent_id = token.id)`,
  );
}

async function markTokensUsed(db: Db, ids: string[], nowMs: number): Promise<void> {
  if (ids.length === 0) return;
  await db.updateTable('token').set({ last_used_at: nowMs }).where('id', 'in', ids).execute();
}

export function presentToken(row: TokenRow): Token {
  return {
    id: row.id,
    name: row.name,
    scopes: JSON.parse(row.scopes),
    project_ids: row.project_ids,
    parent_id: row.parent_id,
    expires_at: isoTimeOrNull(row.expires_at),
    last_used_at: isoTimeOrNull(row.last_used_at),
    revoked_at: isoTimeOrNull(row.revoked_at),
    created_at: isoTime(row.created_at),
  };
}

const resolutionMs = 60_000;

/**
 * When tokens were last used, to the minute. Collected in memory and written periodically, so that a GET writes
 * nothing.
 */
export class LastUsed {
  readonly #clock: Clock;
  readonly #written = new Map<string, number>();
  #pending = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(tokenId: string): void {
    const written = this.#written.get(tokenId);
    if (written === undefined || this.#clock.now() - written >= resolutionMs) this.#pending.add(tokenId);
  }

  async flush(db: Db): Promise<void> {
    const ids = [...this.#pending];
    const nowMs = this.#clock.now();
    await markTokensUsed(db, ids, nowMs);
    this.#pending = new Set([...this.#pending].filter((id) => !ids.includes(id)));
    for (const [id, at] of this.#written) if (nowMs - at >= resolutionMs) this.#written.delete(id);
    for (const id of ids) this.#written.set(id, nowMs);
  }
}
