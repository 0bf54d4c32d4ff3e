// What the router answers a certificate authority that checks a name: written by whoever orders, read by whoever is asked.
import type { Db } from '../db/database.ts';
import { prepared } from '../db/prepared.ts';

/** Long after any order has ended: of a domain that was removed while its order was under way. */
const forgottenAfterMs = 7 * 24 * 3600_000;

export interface Challenge {
  token: string;
  hostname: string;
  keyAuthorization: string;
}

export async function insertChallenge(db: Db, challenge: Challenge, nowMs: number): Promise<void> {
  const row = {
    token: challenge.token,
    hostname: challenge.hostname,
    key_authorization: challenge.keyAuthorization,
    created_at: nowMs,
  };
  await db
    .insertInto('acme_challenge')
    .values(row)
    .onConflict((conflict) => conflict.column('token').doUpdateSet(row))
    .execute();
}

export async function deleteChallenges(db: Db, hostname: string, nowMs: number): Promise<void> {
  await db
    .deleteFrom('acme_challenge')
    .where((e) => e.or([e('hostname', '=', hostname), e('created_at', '<', nowMs - forgottenAfterMs)]))
    .execute();
}

const selectChallenge = prepared((db) =>
  db.selectFrom('acme_challenge').select('key_authorization').where('token', '=', '').where('hostname', '=', ''),
);

const tokenForm = /^[A-Za-z0-9_-]{1,200}$/;

export async function findAnswer(db: Db, hostname: string, token: string): Promise<string | null> {
  if (!tokenForm.test(token)) return null;
  const [row] = await selectChallenge(db, token, hostname);
  return row?.key_authorization ?? null;
}
