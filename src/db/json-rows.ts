// Many rows or values as one parameter: a JSON array. The text of a statement then stays the same however many there
// are, so the database prepares it once.
import { type RawBuilder, sql } from 'kysely';
import type { DialectName } from './migrations/types.ts';

type RowTypes = Readonly<Record<string, 'text' | 'bigint'>>;

/** A table expression `r` with a column for each field. `parameter` is where the JSON is bound: '$1', say. */
export function postgresRows(parameter: string, types: RowTypes): string {
  const columns = Object.entries(types).map(([name, type]) => `${name} ${type}`);
  return `json_to_recordset(${parameter}::json) as r(${columns.join(', ')})`;
}

/** The same for SQLite. The JSON is bound to the `?` in it. */
export function sqliteRows(types: RowTypes): string {
  const columns = Object.keys(types).map((name) => `value ->> '${name}' as ${name}`);
  return `(select ${columns.join(', ')} from json_each(?)) as r`;
}

/** What a column is `in`, where the values are one JSON array of strings. For prepared queries. */
export const jsonTexts = (dialect: DialectName): RawBuilder<string> =>
  dialect === 'postgres'
    ? sql<string>`(select json_array_elements_text(${''}::json))`
    : sql<string>`(select value from json_each(${''}))`;
