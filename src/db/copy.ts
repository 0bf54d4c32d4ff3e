// Everything of one database into another that is empty: how an installation grows from SQLite to PostgreSQL. All of it
// goes into one transaction, so the target has everything or nothing.
import { sql } from 'kysely';
import { StartError } from '../lib/start-error.ts';
import type { Db } from './database.ts';
import type { AnyDb } from './migrations/types.ts';

/** Of no use anywhere else: the version of the schema, and what runs out by itself. */
const leftOut = new Set(['migration', 'rate_cell', 'environment_lease']);
const batchRows = 500;

export interface Copied {
  table: string;
  rows: number;
}

export async function copyDatabase(from: Db, to: Db): Promise<Copied[]> {
  if (await to.selectFrom('account').select('id').limit(1).executeTakeFirst()) {
    throw new StartError('The target has accounts already: it must be a new, empty database.');
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
    // Opening the target wrote a few of its own.
    await (table === 'meta'
      ? insert.onConflict((conflict) =>
          conflict.column('name').doUpdateSet((e) => ({ value: e.ref('excluded.value') })),
        )
      : insert
    ).execute();
  }
}

/** Those that others refer to first. */
async function listTables(db: AnyDb): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name`.execute(db);
  const waiting = new Set(rows.map(({ name }) => name).filter((name) => !leftOut.has(name)));
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
