import { randomBytes } from 'node:crypto';
import type { Db } from './database.ts';

/** The permanent id of this installation. Engines that several installations share use it to tell their instances apart. */
export async function findInstallation(db: Db): Promise<string> {
  await db
    .insertInto('meta')
    .values({ name: 'installation', value: randomBytes(6).toString('hex') })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
  const row = await db.selectFrom('meta').select('value').where('name', '=', 'installation').executeTakeFirstOrThrow();
  return row.value;
}
