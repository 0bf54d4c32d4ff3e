// Responses to http-01 challenges. The process that carries out an order writes them; any router process serves them.
import type { Db } from '../db/database.ts';
import { prepared } from '../db/prepared.ts';

/** Removes leftovers of domains that were deleted during an order. */
const keptForMs = 7 * 24 * 3600_000;

interface Challenge {
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
    .where((e) => e.or([e('hostname', '=', hostname), e('created_at', '<', nowMs - keptForMs)]))
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
