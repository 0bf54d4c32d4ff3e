// Many rows as one parameter: a JSON array of objects. The text of a statement then stays the same however many rows
// there are, so the database prepares it once. Both functions give a table expression `r` with a column for each field.

type RowTypes = Readonly<Record<string, 'text' | 'bigint'>>;

/** `parameter` is where the JSON is bound: '$1', say. */
export function postgresRows(parameter: string, types: RowTypes): string {
  const columns = Object.entries(types).map(([name, type]) => `${name} ${type}`);
  return `json_to_recordset(${parameter}::json) as r(${columns.join(', ')})`;
}

/** The JSON is bound to the `?` in it. */
export function sqliteRows(types: RowTypes): string {
  const columns = Object.keys(types).map((name) => `value ->> '${name}' as ${name}`);
  return `(select ${columns.join(', ')} from json_each(?)) as r`;
}
