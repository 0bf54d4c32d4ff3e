// All tokens are revoked here.
import type { Db } from '../db/database.ts';
import { publish } from '../signals/signals.ts';
import { listChildren, markTokensRevoked } from './queries.ts';

/** How many tokens one statement names. */
const atOnce = 500;

/**
 * Returns the ids of those that this call revoked. A token is revoked before those it made are looked for, and it makes
 * none once it is revoked (`lockLifetime`), so that none is missed.
 */
export async function revokeToken(tx: Db, id: string, cascade: boolean, nowMs: number): Promise<string[]> {
  const revoked: string[] = [];
  const waiting = [id];
  while (waiting.length > 0) {
    const some = waiting.splice(0, atOnce);
    revoked.push(...(await markTokensRevoked(tx, some, nowMs)));
    if (cascade) waiting.push(...(await listChildren(tx, some)));
  }
  for (const tokenId of revoked) publish(tx, 'tokens', { tokenId });
  return revoked;
}
