// Many rows as one parameter: the statement stays the same however many there are, so it is compiled once.
import { type RawBuilder, sql } from 'kysely';
import type { DialectName } from '../../db/migrations/types.ts';

export type RowTypes = Record<string, 'text' | 'bigint'>;

/** A table expression `r` with a row for each element of a JSON array of objects. */
export function jsonRows(dialect: DialectName, json: string, types: RowTypes): RawBuilder<unknown> {
  const names = Object.keys(types);
  if (dialect === 'postgres') {
    const columns = names.map((name) => sql`${sql.ref(name)} ${sql.raw(types[name]!)}`);
    return sql`json_to_recordset(${json}::json) as r(${sql.join(columns)})`;
  }
  const columns = names.map((name) => sql`value ->> ${sql.lit(name)} as ${sql.ref(name)}`);
  return sql`(select ${sql.join(columns)} from json_each(${json})) as r`;
}
