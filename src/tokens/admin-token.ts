// The first account and its admin token. The token is SLUICE_ADMIN_TOKEN, or else the one in the data directory. If
// there is neither, the first start creates one, prints it once and saves it in the data directory.
import { rmSync } from 'node:fs';
import { adminTokenPath, readAdminToken, writeSecretFile } from '../data-dir.ts';
import type { Db } from '../db/database.ts';
import { isUniqueViolation } from '../db/database-errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { createToken, hashOfSecret, newTokenSecret } from './create-token.ts';
import { endSessionsOf } from './session-queries.ts';

interface AdminOptions {
  db: Db;
  ids: IdSource;
  clock: Clock;
  dataDir: string;
  configured: string | null;
}

/** Returns the token only if this call created it. */
export async function ensureAdminToken(options: AdminOptions): Promise<string | null> {
  const { db, dataDir, configured } = options;
  const kept = configured ?? readAdminToken(dataDir);
  const existing = await db.selectFrom('token').select(['id', 'hash']).where('kind', '=', 'admin').executeTakeFirst();
  if (existing) {
    if (kept !== null && hashOfSecret(kept) !== existing.hash) await replaceHash(options, existing.id, kept);
    return null;
  }
  const secret = kept ?? newTokenSecret();
  // The file comes before the row: after a crash in between, the next start uses the token in the file.
  if (kept === null) writeSecretFile(adminTokenPath(dataDir), `${secret}\n`);
  try {
    await insertAdmin(options, secret);
  } catch (error) {
    // Another process that shares the database was first. Its token stays, unless this process was given one.
    if (!isUniqueViolation(error)) throw error;
    if (kept === null) rmSync(adminTokenPath(dataDir));
    return ensureAdminToken(options);
  }
  return kept === null ? secret : null;
}

/** Another secret: what was signed in with the old one is signed out. */
async function replaceHash({ db, clock }: AdminOptions, id: string, secret: string): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await tx
      .updateTable('token')
      .set((e) => ({ hash: hashOfSecret(secret), revoked_at: null, version: e('version', '+', 1) }))
      .where('id', '=', id)
      .execute();
    await endSessionsOf(tx, [id], clock.now());
  });
}

async function insertAdmin({ db, ids, clock }: AdminOptions, secret: string): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const accountId = await insertAccount(tx, ids, 'default', clock.now());
    await createToken(tx, { ids, clock }, { accountId, kind: 'admin', name: 'admin', scopes: ['*'], secret });
  });
}

export async function insertAccount(db: Db, ids: IdSource, name: string, nowMs: number): Promise<string> {
  const id = ids('acc');
  await db.insertInto('account').values({ id, name, created_at: nowMs }).execute();
  return id;
}

export async function findAccount(db: Db, id: string): Promise<{ id: string; name: string } | undefined> {
  return db.selectFrom('account').select(['id', 'name']).where('id', '=', id).executeTakeFirst();
}

export async function listAccounts(db: Db): Promise<{ id: string; name: string }[]> {
  return db.selectFrom('account').select(['id', 'name']).orderBy('id').execute();
}
