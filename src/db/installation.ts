import { randomBytes } from 'node:crypto';
import type { Db } from './database.ts';

/** A name of this installation for ever, made with its database: engines keep apart by it what belongs to whom. */
export async function findInstallation(db: Db): Promise<string> {
  await db
    .insertInto('meta')
    .values({ name: 'installation', value: randomBytes(6).toString('hex') })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
  const row = await db.selectFrom('meta').select('value').where('name', '=', 'installation').executeTakeFirstOrThrow();
  return row.value;
}
