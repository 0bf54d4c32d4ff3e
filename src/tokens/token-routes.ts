import type { Quotas } from '../accounts/quotas.ts';
import { ApiError, notFound } from '../contract/errors.ts';
import { allows, type Caller, type Scope } from '../contract/scopes.ts';
import * as contract from '../contract/tokens.ts';
import type { Db } from '../db/database.ts';
import { unauthorized } from '../http/api/gate.ts';
import { type ApiCall, type ServedRoute, serve } from '../http/api/served-route.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { listKnownProjects } from '../projects/project-queries.ts';
import { publish } from '../signals/signals.ts';
import { createToken } from './create-token.ts';
import { endSessionsOf } from './session-queries.ts';
import {
  findToken,
  listChildren,
  listTokens,
  lockLifetime,
  markTokensRevoked,
  presentToken,
  type TokenRow,
} from './token-queries.ts';

interface TokenParts {
  ids: IdSource;
  clock: Clock;
  quotas: Quotas;
}

export function tokenRoutes({ ids, clock, quotas }: TokenParts): ServedRoute[] {
  return [
    serve(contract.listTokens, async (call, db) => {
      const { rows, searchedTo } = await listTokens(db, call.caller, call.query.search, call.page);
      return { body: call.paginate(rows, (row) => row.id, presentToken, searchedTo) };
    }),

    serve(contract.createToken, async (call, tx) => {
      await refuseMoreThanOwn(call, tx);
      const { accountId, tokenId: parentId } = call.caller;
      const { name, scopes } = call.body;
      const projectIds = requestedProjects(call);
      const expiresAt = earlier(readExpiry(call.body.expires_at, clock.now()), await ownExpiry(tx, call.caller));
      const { row, secret } = await quotas.within(tx, accountId, ['tokens'], () =>
        createToken(tx, { ids, clock }, { accountId, name, scopes, projectIds, parentId, expiresAt }),
      );
      return {
        body: { ...presentToken(row), token: secret },
        version: row.version,
        location: `/tokens/${row.id}`,
      };
    }),

    serve(contract.getToken, async (call, db) => {
      const row = await requireToken(db, call.caller, call.params.tok);
      return { body: presentToken(row), version: row.version };
    }),

    serve(contract.revokeToken, async (call, tx) => {
      const row = await requireToken(tx, call.caller, call.params.tok);
      call.expectVersion(row.version);
      refuseUpwards(call.caller, row);
      const revoked = await revokeToken(tx, row.id, call.query.cascade === 'true', clock.now());
      const others = revoked.filter((id) => id !== row.id).map((id) => `/tokens/${id}`);
      const { name, scopes, project_ids, expires_at } = presentToken(row);
      return { body: undefined, before: { name, scopes, project_ids, expires_at }, alsoChanged: others };
    }),

    serve(contract.whoAmI, async (call, db) => {
      const row = await requireToken(db, call.caller, call.caller.tokenId);
      return { body: presentToken(row), version: row.version };
    }),
  ];
}

async function requireToken(db: Db, caller: Caller, id: string): Promise<TokenRow> {
  const row = await findToken(db, caller, id);
  if (!row) throw notFound('tok', id);
  return row;
}

/** By default, a token that is bound to projects creates tokens bound to the same projects. */
function requestedProjects(call: ApiCall<typeof contract.createToken>): string[] | null {
  const { project_ids } = call.body;
  if (project_ids !== undefined) return project_ids;
  return call.caller.projectIds === null ? null : [...call.caller.projectIds];
}

/** What the token that makes another may itself use; read within the transaction, in case it has just been revoked. */
async function ownExpiry(tx: Db, { tokenId }: Caller): Promise<number | null> {
  const own = await lockLifetime(tx, tokenId);
  if (!own || own.revoked_at !== null) throw unauthorized('token_revoked', 'The token was revoked.');
  return own.expires_at;
}

const earlier = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other);

function refuseUpwards(caller: Caller, { scopes }: TokenRow): void {
  const beyond = (JSON.parse(scopes) as Scope[]).filter((scope) => !allows(caller.scopes, scope));
  if (beyond.length === 0) return;
  throw new ApiError('insufficient_scope', 'A token cannot revoke a token with more permissions than its own.', {
    details: beyond.map((scope) => ({ path: 'scopes', message: scope })),
  });
}

async function refuseMoreThanOwn(call: ApiCall<typeof contract.createToken>, db: Db): Promise<void> {
  const { caller, body } = call;
  const beyond = body.scopes.filter((scope: Scope) => !allows(caller.scopes, scope));
  if (beyond.length > 0) {
    throw new ApiError('insufficient_scope', 'A token cannot create a token with more permissions than its own.', {
      details: beyond.map((scope) => ({ path: 'body.scopes', message: scope })),
    });
  }
  const projects = requestedProjects(call);
  if (caller.projectIds !== null && projects === null) {
    throw new ApiError('insufficient_scope', 'A token bound to projects cannot create a token for all projects.', {
      details: [{ path: 'body.project_ids', message: 'must be some of the projects this token is bound to' }],
    });
  }
  const known = new Set(await listKnownProjects(db, caller, projects ?? []));
  const unknown = projects?.find((id) => !known.has(id));
  if (unknown) throw notFound('id', unknown);
}

function readExpiry(text: string | null | undefined, nowMs: number): number | null {
  if (text === null || text === undefined) return null;
  const ms = Date.parse(text);
  if (ms > nowMs) return ms;
  throw new ApiError('invalid_request', 'The expiry time is in the past.', {
    details: [{ path: 'body.expires_at', message: 'must be a time in the future' }],
  });
}

/** How many tokens one statement names. */
const atOnce = 500;

/**
 * All tokens are revoked here. Returns the ids of those that this call revoked. A token is revoked before the tokens it
 * created are searched for, and it creates none once it is revoked (`lockLifetime`), so that none is missed.
 */
async function revokeToken(tx: Db, id: string, cascade: boolean, nowMs: number): Promise<string[]> {
  const revoked: string[] = [];
  const waiting = [id];
  while (waiting.length > 0) {
    const some = waiting.splice(0, atOnce);
    revoked.push(...(await markTokensRevoked(tx, some, nowMs)));
    if (cascade) waiting.push(...(await listChildren(tx, some)));
  }
  await endSessionsOf(tx, revoked, nowMs);
  for (const tokenId of revoked) publish(tx, 'tokens', { tokenId });
  return revoked;
}
