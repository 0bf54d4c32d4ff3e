// The time by which things are old enough to be deleted. A clock that is wrong for some hours, ahead by a year say, must
// not delete a year of history. So this time goes on from where it was, as fast as time really passes, and takes a jump
// of the clock for true only after the clock has gone on without another for a day. At worst things are kept longer.
import { type Clock, monotonicOf } from '../lib/clock.ts';
import type { Db } from './database.ts';

const metaName = 'retention_time';
const provenAfterMs = 24 * 3600_000;
/** What clocks are adjusted by in their ordinary course. */
const jumpMs = 60_000;

export class RetentionClock {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #monotonic: Clock;
  /** By how much the clock is ahead of the time that never jumps, and since when it is. */
  #ahead: { ms: number; since: number } | null = null;
  #readAt: number | null = null;

  constructor(db: Db, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
    this.#monotonic = monotonicOf(clock);
  }

  /** Never later than what the clock says. */
  async now(): Promise<number> {
    const nowMs = this.#clock.now();
    const monotonicMs = this.#monotonic.now();
    const passedMs = monotonicMs - (this.#readAt ?? monotonicMs);
    this.#readAt = monotonicMs;
    const known = await this.#read();
    const passed = known === null || this.#isProven(nowMs, monotonicMs) ? nowMs : Math.min(nowMs, known + passedMs);
    const time = Math.floor(passed); // monotonic time has fractions, columns have not
    if (time !== known) await this.#write(time);
    return time;
  }

  #isProven(nowMs: number, monotonicMs: number): boolean {
    const ms = nowMs - monotonicMs;
    if (!this.#ahead || Math.abs(ms - this.#ahead.ms) > jumpMs) this.#ahead = { ms, since: monotonicMs };
    return monotonicMs - this.#ahead.since >= provenAfterMs;
  }

  /** null: this database has not been kept tidy yet. */
  async #read(): Promise<number | null> {
    const row = await this.#db.selectFrom('meta').select('value').where('name', '=', metaName).executeTakeFirst();
    return row ? Number(row.value) : null;
  }

  async #write(time: number): Promise<void> {
    const value = String(Math.floor(time));
    await this.#db
      .insertInto('meta')
      .values({ name: metaName, value })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
      .execute();
  }
}
