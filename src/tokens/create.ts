import type { Scope } from '../contract/scopes.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { insertToken, type TokenRow } from './queries.ts';
import { hashOfSecret, newTokenSecret } from './secret.ts';

interface NewToken {
  accountId: string;
  name: string;
  scopes: Scope[];
  kind?: 'user' | 'admin';
  projectIds?: string[] | null;
  expiresAt?: number | null;
  /** The token that makes it. */
  parentId?: string;
  /** Default: a new random one. */
  secret?: string;
}

/** All tokens are created here. */
export async function createToken(
  db: Db,
  { ids, clock }: { ids: IdSource; clock: Clock },
  token: NewToken,
): Promise<{ row: TokenRow; secret: string }> {
  const secret = token.secret ?? newTokenSecret();
  const projectIds = token.projectIds ?? null;
  const row: TokenRow = {
    id: ids('tok'),
    account_id: token.accountId,
    kind: token.kind ?? 'user',
    name: token.name,
    hash: hashOfSecret(secret),
    scopes: JSON.stringify(token.scopes),
    bound: projectIds === null ? 0 : 1,
    project_ids: projectIds,
    parent_id: token.parentId ?? null,
    expires_at: token.expiresAt ?? null,
    last_used_at: null,
    revoked_at: null,
    created_at: clock.now(),
    version: 1,
  };
  await insertToken(db, row);
  return { row, secret };
}
