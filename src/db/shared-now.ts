// Times that several processes compare, such as the end of a lease, are of one clock: that of the database. SQLite is
// used by one process, whose own clock it is.
import { type RawBuilder, sql } from 'kysely';
import { type Db, dialectOf } from './database.ts';

/** In milliseconds since the epoch, with fractions, at the moment the expression is evaluated. */
export const postgresExactNow = sql<string>`(extract(epoch from clock_timestamp()) * 1000)`;

/** In whole milliseconds. */
export const postgresNow = sql<number>`${postgresExactNow}::bigint`;

export const sharedNow = (db: Db, ownNowMs: number): RawBuilder<number> =>
  dialectOf(db) === 'postgres' ? postgresNow : sql<number>`${ownNowMs}`;
