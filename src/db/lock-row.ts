import { type Db, dialectOf } from './database.ts';

/**
 * Until the transaction ends, others that lock the row wait; they may still refer to it. For a number of rows that must not
 * be exceeded: two who count at once would both find room. SQLite has one writer at a time anyway.
 */
export async function lockRow(tx: Db, table: 'account' | 'project', id: string): Promise<void> {
  if (dialectOf(tx) === 'postgres')
    await tx.selectFrom(table).select('id').where('id', '=', id).forNoKeyUpdate().execute();
}
