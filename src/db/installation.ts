// What the database remembers about the installation it belongs to: its permanent id, and which secret key encrypts it.
import { randomBytes } from 'node:crypto';
import type { Seal } from '../lib/seal.ts';
import { StartError } from '../lib/start-error.ts';
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

const keyCheckContext = 'key check';

/** Refuses to start with a key other than the one that this database was encrypted with. */
export async function checkSecretKey(db: Db, seal: Seal): Promise<void> {
  await db
    .insertInto('meta')
    .values({ name: 'key_check', value: seal.seal('sluice', keyCheckContext) })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
  const row = await db.selectFrom('meta').select('value').where('name', '=', 'key_check').executeTakeFirstOrThrow();
  try {
    seal.open(row.value, keyCheckContext);
  } catch {
    throw new StartError(
      'The secret key is not the one this database was encrypted with: restore <data>/secret.key or set SLUICE_SECRET_KEY to it.',
    );
  }
}
