import type { Db } from '../db/database.ts';
import type { IdSource } from '../lib/ids.ts';

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
