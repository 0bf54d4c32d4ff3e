// Copies a SQLite database to an empty PostgreSQL database, in one transaction: the target gets everything or nothing.
import { sql } from 'kysely';
import { StartError } from '../lib/start-error.ts';
import type { Db } from './database.ts';
import type { AnyDb } from './dialect.ts';

/**
 * Not copied: the schema version, which the target has itself, rows that soon expire, and logs, whose bytes are files
 * here. What the engines still have of them is collected again.
 */
const skippedTables = new Set([
  'migration',
  'rate_cell',
  'environment_lease',
  'router',
  'instance_usage',
  'log_stream',
  'log_segment',
  'log_blob',
]);
const batchRows = 500;

interface Copied {
  table: string;
  rows: number;
}

export async function copyDatabase(from: Db, to: Db): Promise<Copied[]> {
  if (await to.selectFrom('account').select('id').limit(1).executeTakeFirst()) {
    throw new StartError('The target already has accounts: it must be a new, empty database.');
  }
  const tables = await listTables(from);
  return to.transaction().execute(async (tx) => {
    const copied: Copied[] = [];
    for (const table of tables) copied.push({ table, rows: await copyTable(from, tx, table) });
    return copied;
  });
}

async function copyTable(from: AnyDb, tx: AnyDb, table: string): Promise<number> {
  let rows = 0;
  for (let after = -1; ; ) {
    const page = await from
      .selectFrom(table)
      .selectAll()
      .select(sql<number>`rowid`.as('row_number'))
      .where(sql`rowid`, '>', after)
      .orderBy(sql`rowid`)
      .limit(batchRows)
      .execute();
    if (page.length === 0) return rows;
    after = Number(page.at(-1)!.row_number);
    rows += page.length;
    const values = page.map(({ row_number: _, ...row }) => row);
    const insert = tx.insertInto(table).values(values);
    // Opening the target has already written some of these rows.
    await (table === 'meta'
      ? insert.onConflict((conflict) =>
          conflict.column('name').doUpdateSet((e) => ({ value: e.ref('excluded.value') })),
        )
      : insert
    ).execute();
  }
}

/** Sorted so that a table comes after those that it refers to. */
async function listTables(db: AnyDb): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name`.execute(db);
  const waiting = new Set(rows.map(({ name }) => name).filter((name) => !skippedTables.has(name)));
  const needs = new Map<string, string[]>();
  for (const name of waiting) {
    const keys = await sql<{ table: string }>`select "table" from pragma_foreign_key_list(${name})`.execute(db);
    needs.set(
      name,
      keys.rows.map(({ table }) => table).filter((table) => table !== name),
    );
  }
  const sorted: string[] = [];
  while (waiting.size > 0) {
    const ready = [...waiting].filter((name) => needs.get(name)!.every((other) => !waiting.has(other)));
    if (ready.length === 0) throw new Error(`tables refer to each other in a circle: ${[...waiting].join(', ')}`);
    for (const name of ready) waiting.delete(name);
    sorted.push(...ready);
  }
  return sorted;
}
