// Copies a database to an empty one of the other kind, in one transaction: the target gets everything or nothing.
import { sql } from 'kysely';
import { StartError } from '../lib/start-error.ts';
import type { Db } from './database.ts';
import type { AnyDb, DialectName } from './dialect.ts';

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
  'account_usage',
]);
const batchRows = 500;

interface Copied {
  table: string;
  rows: number;
}

/** From SQLite to PostgreSQL, or the other way. */
export async function copyDatabase(from: Db, to: Db, source: DialectName = 'sqlite'): Promise<Copied[]> {
  if (await to.selectFrom('account').select('id').limit(1).executeTakeFirst()) {
    throw new StartError('The target already has accounts: it must be a new, empty database.');
  }
  const sqlite = source === 'sqlite' ? from : to;
  const tables = await listTables(sqlite);
  const columns = await listColumns(sqlite, tables);
  const copyAll = (read: AnyDb) =>
    to.transaction().execute(async (tx) => {
      const copied: Copied[] = [];
      for (const table of tables)
        copied.push({ table, rows: await copyTable(read, tx, table, columns.get(table)!, source) });
      return copied;
    });
  if (source === 'sqlite') return copyAll(from);
  // All tables as they are at one moment, while the service goes on.
  return from.transaction().setIsolationLevel('repeatable read').execute(copyAll);
}

/** In the order in which they lie there, so that a page costs the same however many there are. */
async function copyTable(
  from: AnyDb,
  tx: AnyDb,
  table: string,
  columns: string[],
  source: DialectName,
): Promise<number> {
  const place = source === 'sqlite' ? sql<number | string>`rowid` : sql<number | string>`ctid::text`;
  const isAfter = (last: number | string) =>
    source === 'sqlite' ? sql<boolean>`rowid > ${last}` : sql<boolean>`ctid > ${last}::tid`;
  let rows = 0;
  for (let after: number | string = source === 'sqlite' ? -1 : '(0,0)'; ; ) {
    const page: Record<string, unknown>[] = await from
      .selectFrom(table)
      .select(columns)
      .select(place.as('row_place'))
      .where(isAfter(after))
      .orderBy(source === 'sqlite' ? sql`rowid` : sql`ctid`)
      .limit(batchRows)
      .execute();
    if (page.length === 0) return rows;
    after = page.at(-1)!.row_place as number | string;
    rows += page.length;
    const values = page.map(({ row_place: _, ...row }) => row);
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

/** Those that both databases have: PostgreSQL has a few more, of its own. */
async function listColumns(sqlite: AnyDb, tables: string[]): Promise<Map<string, string[]>> {
  const columns = new Map<string, string[]>();
  for (const table of tables) {
    const { rows } = await sql<{ name: string }>`select name from pragma_table_info(${table})`.execute(sqlite);
    columns.set(
      table,
      rows.map(({ name }) => name),
    );
  }
  return columns;
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
