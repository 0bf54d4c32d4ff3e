// Creates tokens. A token is `slc_`, 30 random base62 characters, and 6 characters of their CRC-32, so that secret
// scanners can recognise a real token without calling the service. Only its hash is stored.
import { hash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Scope } from '../contract/scopes.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { insertToken, type TokenRow } from './token-queries.ts';

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

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

export function newTokenSecret(): string {
  const body = Array.from({ length: 30 }, () => base62[randomInt(62)]).join('');
  return `slc_${body}${checksumOf(body)}`;
}

export function checksumOf(body: string): string {
  let rest = crc32(body);
  let out = '';
  for (let i = 0; i < 6; i++) {
    out = base62[rest % 62]! + out;
    rest = Math.floor(rest / 62);
  }
  return out;
}

export const hashOfSecret = (secret: string): string => hash('sha256', secret);
