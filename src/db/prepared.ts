// Statements of the hot path, whose text never changes, so that each is built, compiled and planned as rarely as possible.
// On SQLite prepared queries bypass Kysely, except inserts outside of a transaction.
import { type CompiledQuery, type RawBuilder, sql } from 'kysely';
import { type Db, dialectOf } from './database.ts';
import type { DialectName } from './dialect.ts';
import type { Tables } from './tables.ts';
import { type RunDirectly, scopeOf } from './transactions.ts';

const readers = new WeakMap<Db, RunDirectly>();

/** Makes prepared reads of this SQLite database use `read`, unless they are in a transaction. */
export function readDirectly(db: Db, read: RunDirectly): void {
  readers.set(db, read);
}

/** Runs a query that is compiled already. */
export async function runCompiled<R>(db: Db, query: CompiledQuery<R>): Promise<R[]> {
  const run = scopeOf(db)?.runDirectly;
  return run ? run(query) : (await db.executeQuery(query)).rows;
}

/** A prepared read. `build` uses placeholder values; callers pass the real ones in the order of the query. */
export function prepared<R>(build: (db: Db) => { compile(): CompiledQuery<R> }) {
  const compiled: Partial<Record<DialectName, CompiledQuery<R>>> = {};
  return async (db: Db, ...parameters: unknown[]): Promise<R[]> => {
    const read = readers.get(db);
    const dialect = read ? 'sqlite' : dialectOf(db);
    compiled[dialect] ??= build(db).compile();
    const query = { ...compiled[dialect], parameters };
    return read ? read(query) : runCompiled(db, query);
  };
}

/** A prepared insert of one row. Every row has all columns of the table, so the names come from the first one. */
export function preparedInsert<T extends keyof Tables>(table: T) {
  const compiled: Partial<Record<DialectName, CompiledQuery>> = {};
  let columns: (keyof Tables[T])[] = [];
  return async (db: Db, row: Tables[T]): Promise<void> => {
    if (columns.length === 0) columns = Object.keys(row) as (keyof Tables[T])[];
    const dialect = dialectOf(db);
    compiled[dialect] ??= db
      .insertInto(table)
      .values(Object.fromEntries(columns.map((name) => [name, row[name]])) as never)
      .compile();
    await runCompiled(db, { ...compiled[dialect], parameters: columns.map((name) => row[name]) });
  };
}

// Many rows or values are passed as one parameter, a JSON array: the text of the statement stays the same however many
// there are, so the database prepares it once.

type RowTypes = Readonly<Record<string, 'text' | 'bigint'>>;

/** A table expression `r` with a column for each field. `parameter` is where the JSON is bound: '$1', say. */
export function postgresRows(parameter: string, types: RowTypes): string {
  return `json_to_recordset(${parameter}::json) as r(${columnsOf(types)})`;
}

const columnsOf = (types: RowTypes): string =>
  Object.entries(types)
    .map(([name, type]) => `${name} ${type}`)
    .join(', ');

/** The same table expression for SQLite. The JSON is bound to the `?` in it. */
export function sqliteRows(types: RowTypes): string {
  return `(select ${valuesOf(types)} from json_each(?)) as r`;
}

const valuesOf = (types: RowTypes): string =>
  Object.keys(types)
    .map((name) => `value ->> '${name}' as ${name}`)
    .join(', ');

/** The same where the statement is not prepared by hand: with the rows bound to it. */
export const jsonRows = (db: Db, rows: readonly object[], types: RowTypes): RawBuilder<unknown> =>
  dialectOf(db) === 'postgres'
    ? sql`json_to_recordset(${JSON.stringify(rows)}::json) as r(${sql.raw(columnsOf(types))})`
    : sql`(select ${sql.raw(valuesOf(types))} from json_each(${JSON.stringify(rows)})) as r`;

/** What a column is `in`, where the values are one JSON array of strings. For prepared queries. */
export const jsonTexts = (dialect: DialectName): RawBuilder<string> =>
  dialect === 'postgres'
    ? sql<string>`(select json_array_elements_text(${''}::json))`
    : sql<string>`(select value from json_each(${''}))`;

// Some statements cost PostgreSQL more to plan than to run. It keeps the plans of these, once per connection, and makes new
// ones when the statistics of their tables change. Behind a PgBouncer in transaction mode it keeps no plans.

const planNames = new Map<string, string>();

/** Makes the server keep the plan of this statement. Returns its text. */
export function keepPlan(text: string): string {
  if (!planNames.has(text)) planNames.set(text, `sluice_kept_${planNames.size}`);
  return text;
}

/** The name under which the server keeps the plan of a statement; undefined: it does not. */
export const keptName = (text: string): string | undefined => planNames.get(text);
