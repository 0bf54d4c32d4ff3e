// The first account and its admin token. The token comes from SLUICE_ADMIN_TOKEN, or from the file in the data
// directory, or, on the first start, from here: then it is printed once and kept in that file.
import { rmSync } from 'node:fs';
import { adminTokenPath, readAdminToken, writeSecretFile } from '../data-dir.ts';
import type { Db } from '../db/database.ts';
import { isUniqueViolation } from '../db/errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { insertAccount } from './accounts.ts';
import { makeToken } from './make.ts';
import { hashOfSecret, newTokenSecret } from './secret.ts';

export interface AdminOptions {
  db: Db;
  ids: IdSource;
  clock: Clock;
  dataDir: string;
  configured: string | null;
}

/** Gives the token back only if it was made just now. */
export async function ensureAdminToken(options: AdminOptions): Promise<string | null> {
  const { db, dataDir, configured } = options;
  const kept = configured ?? readAdminToken(dataDir);
  const existing = await db.selectFrom('token').select(['id', 'hash']).where('kind', '=', 'admin').executeTakeFirst();
  if (existing) {
    if (kept !== null && hashOfSecret(kept) !== existing.hash) await replaceHash(db, existing.id, kept);
    return null;
  }
  const secret = kept ?? newTokenSecret();
  // First the file, then the row: a crash in between leaves a token that the next start takes up.
  if (kept === null) writeSecretFile(adminTokenPath(dataDir), `${secret}\n`);
  try {
    await insertAdmin(options, secret);
  } catch (error) {
    // Another process that shares the database was first. Its token counts, unless this one was told its own.
    if (!isUniqueViolation(error)) throw error;
    if (kept === null) rmSync(adminTokenPath(dataDir));
    return ensureAdminToken(options);
  }
  return kept === null ? secret : null;
}

async function replaceHash(db: Db, id: string, secret: string): Promise<void> {
  await db
    .updateTable('token')
    .set((e) => ({ hash: hashOfSecret(secret), revoked_at: null, version: e('version', '+', 1) }))
    .where('id', '=', id)
    .execute();
}

async function insertAdmin({ db, ids, clock }: AdminOptions, secret: string): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const accountId = await insertAccount(tx, ids, 'default', clock.now());
    await makeToken(tx, { ids, clock }, { accountId, kind: 'admin', name: 'admin', scopes: ['*'], secret });
  });
}
