import { sql } from 'kysely';
import type { AnyDb, Columns, Migration } from '../dialect.ts';

/** Which token made a token, and what shows that an account may use a hostname. */
export const identity: Migration = {
  name: 'identity',
  async up(db, columns) {
    await addTokenParent(db, columns);
    await addDomainProof(db, columns);
  },
};

/** Tokens of before name no parent. */
async function addTokenParent(db: AnyDb, { text }: Columns): Promise<void> {
  await db.schema.alterTable('token').addColumn('parent_id', text).execute();
  await db.schema.createIndex('token_by_parent').on('token').column('parent_id').execute();
}

/** Domains that serve a certificate go on. One that never got any has to be proved like a new one. */
async function addDomainProof(db: AnyDb, { text }: Columns): Promise<void> {
  await db.schema.alterTable('domain').addColumn('proof', text).execute();
  await sql`update domain set proof = 'earlier' where certificate_id is not null`.execute(db);
}
