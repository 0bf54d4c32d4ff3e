// Idempotency keys. A request claims a row before it is carried out, and stores its response there in the transaction of
// the change. So after a crash there is either the change with its response, or a row without a response whose lease
// expires, and which the next attempt takes over. No change is made twice.

import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { ApiError } from '../../contract/errors.ts';
import type { Db } from '../../db/database.ts';
import { deleteInSlices } from '../../db/delete-slice.ts';
import { changesOne } from '../../db/guarded.ts';
import type { Seal } from '../../lib/seal.ts';

const keptForMs = 24 * 3600_000;
const leaseMs = 60_000;

export interface IdempotentRequest {
  tokenId: string;
  key: string;
  /** Method and path. */
  route: string;
  body: unknown;
  /** The request id, which is unique. */
  owner: string;
}

export interface StoredResponse {
  status: number;
  headers: Record<string, string>;
  body: string;
}

export function readIdempotencyKey(header: string | string[] | undefined): string | null {
  if (header === undefined) return null;
  if (typeof header === 'string' && /^[ -~]{1,255}$/.test(header) && header.trim() !== '') return header;
  throw new ApiError('invalid_request', 'The Idempotency-Key must be 1 to 255 printable characters.', {
    details: [{ path: 'header.idempotency-key', message: 'must be 1 to 255 printable characters' }],
  });
}

const hashOf = (body: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(body ?? null))
    .digest('hex');

const contextOf = (request: IdempotentRequest): string => `idempotency ${request.tokenId} ${request.key}`;

/** The stored response; null: the caller has claimed the key and must complete or release it. */
export async function claimIdempotencyKey(
  db: Db,
  seal: Seal,
  request: IdempotentRequest,
  nowMs: number,
): Promise<StoredResponse | null> {
  const row = {
    token_id: request.tokenId,
    key: request.key,
    route: request.route,
    body_hash: hashOf(request.body),
    owner: request.owner,
    lease_until: nowMs + leaseMs,
    response_sealed: null,
    created_at: nowMs,
  };
  // A lease that ends much later than one taken now is by a clock that has been set back since.
  const hasExpired = sql<boolean>`idempotency.lease_until not between ${nowMs + 1} and ${nowMs + 2 * leaseMs}`;
  // Takes over a row that is too old, or whose lease expired because its process died.
  const claimed = await db
    .insertInto('idempotency')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .columns(['token_id', 'key', 'route'])
        .doUpdateSet(row)
        .where((e) =>
          e.or([
            e('idempotency.created_at', '<=', nowMs - keptForMs),
            e.and([e('idempotency.owner', 'is not', null), hasExpired]),
          ]),
        ),
    )
    .returning('owner')
    .executeTakeFirst();
  if (claimed) return null;

  const found = await rowsOf(db, request).selectAll().executeTakeFirst();
  if (found && found.body_hash !== row.body_hash) {
    throw new ApiError('idempotency_key_reused', 'This Idempotency-Key was used with a different body.', {
      details: [{ path: 'header.idempotency-key', message: 'belongs to a request with a different body' }],
    });
  }
  if (!found?.response_sealed) {
    throw new ApiError('idempotency_in_flight', 'A request with this Idempotency-Key is still in progress.', {
      headers: { 'Retry-After': '1' },
    });
  }
  return JSON.parse(seal.open(found.response_sealed, contextOf(request)));
}

const rowsOf = (db: Db, request: IdempotentRequest) =>
  db
    .selectFrom('idempotency')
    .where('token_id', '=', request.tokenId)
    .where('key', '=', request.key)
    .where('route', '=', request.route);

/** Called in the transaction of the change. Throws if another request has taken over the key. */
export async function completeIdempotencyKey(
  db: Db,
  seal: Seal,
  request: IdempotentRequest,
  response: StoredResponse,
): Promise<void> {
  const completed = await changesOne(
    db
      .updateTable('idempotency')
      .set({
        owner: null,
        response_sealed: seal.seal(JSON.stringify(response), contextOf(request)),
      })
      .where('token_id', '=', request.tokenId)
      .where('key', '=', request.key)
      .where('route', '=', request.route)
      .where('owner', '=', request.owner),
  );
  if (!completed) {
    throw new ApiError('idempotency_in_flight', 'Another request with this Idempotency-Key took over.', {
      headers: { 'Retry-After': '1' },
    });
  }
}

/** For a request that changed nothing: its key can be used again. */
export async function releaseIdempotencyKey(db: Db, request: IdempotentRequest): Promise<void> {
  await db
    .deleteFrom('idempotency')
    .where('token_id', '=', request.tokenId)
    .where('key', '=', request.key)
    .where('route', '=', request.route)
    .where('owner', '=', request.owner)
    .execute();
}

export async function sweepIdempotencyKeys(db: Db, nowMs: number): Promise<void> {
  await deleteInSlices(db, 'idempotency', sql`created_at <= ${nowMs - keptForMs}`);
}
