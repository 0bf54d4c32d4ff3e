// How concurrent writers stay correct. A state changes by one guarded statement: `… where id = … and version = …` (or
// `state = …`) changes one row or none. Where several rows are counted, the row they belong to is locked first.

import { type Db, dialectOf } from './database.ts';
import { isForeignKeyViolation } from './database-errors.ts';

/** The row has changed since it was read. The API and the reconciler then read it again and retry. */
export class ChangedMeanwhile extends Error {}

interface GuardedStatement {
  executeTakeFirst(): Promise<{ numUpdatedRows?: bigint; numDeletedRows?: bigint }>;
}

/** Whether the statement changed its row. */
export async function changesOne(statement: GuardedStatement): Promise<boolean> {
  const { numUpdatedRows, numDeletedRows } = await statement.executeTakeFirst();
  return (numUpdatedRows ?? numDeletedRows) === 1n;
}

/** Throws ChangedMeanwhile if the statement changed no row. */
export async function changeOne(statement: GuardedStatement): Promise<void> {
  if (!(await changesOne(statement))) throw new ChangedMeanwhile();
}

/** Throws ChangedMeanwhile where what the new row belongs to was deleted since it was read. */
export async function insertGuarded(statement: { execute(): Promise<unknown> }): Promise<void> {
  try {
    await statement.execute();
  } catch (error) {
    throw isForeignKeyViolation(error) ? new ChangedMeanwhile() : error;
  }
}

/**
 * Makes others that lock the same row wait until this transaction ends; they may still refer to it. Needed where rows must
 * not exceed a number: two transactions that count at once would both find room. SQLite has one writer at a time anyway.
 */
export async function lockRow(tx: Db, table: 'account' | 'project', id: string): Promise<void> {
  if (dialectOf(tx) === 'postgres')
    await tx.selectFrom(table).select('id').where('id', '=', id).forNoKeyUpdate().execute();
}
