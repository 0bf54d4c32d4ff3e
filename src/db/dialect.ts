// What differs between SQLite and PostgreSQL in a migration.
import { type ColumnDataType, type Kysely, type RawBuilder, sql } from 'kysely';

export type DialectName = 'sqlite' | 'postgres';

/** Column types that mean the same on both databases. Text sorts by bytes, as ids and cursors need. */
export interface Columns {
  text: RawBuilder<unknown> | ColumnDataType;
  int: ColumnDataType;
  real: ColumnDataType;
  bytes: ColumnDataType;
  /** Default of a column that holds the number of the writing transaction; null on SQLite, which has one writer. */
  transactionNumber: RawBuilder<unknown> | null;
}

export const columnsFor = (dialect: DialectName): Columns =>
  dialect === 'postgres'
    ? {
        text: sql`text collate "C"`,
        int: 'bigint',
        real: 'double precision',
        bytes: 'bytea',
        transactionNumber: sql`(pg_current_xact_id()::text::bigint)`,
      }
    : { text: 'text', int: 'integer', real: 'real', bytes: 'blob', transactionNumber: null };

// biome-ignore lint/suspicious/noExplicitAny: a migration knows only the tables of its time
export type AnyDb = Kysely<any>;

/** Numbered without gaps; once landed, never edited. */
export interface Migration {
  name: string;
  up(db: AnyDb, columns: Columns): Promise<void>;
}
