// When tokens were last used, to the minute. Collected in memory and written periodically, so that a GET writes nothing.
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { markTokensUsed } from './queries.ts';

const resolutionMs = 60_000;

export class LastUsed {
  readonly #clock: Clock;
  readonly #written = new Map<string, number>();
  #pending = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(tokenId: string): void {
    const written = this.#written.get(tokenId);
    if (written === undefined || this.#clock.now() - written >= resolutionMs) this.#pending.add(tokenId);
  }

  async flush(db: Db): Promise<void> {
    const ids = [...this.#pending];
    const nowMs = this.#clock.now();
    await markTokensUsed(db, ids, nowMs);
    this.#pending = new Set([...this.#pending].filter((id) => !ids.includes(id)));
    for (const [id, at] of this.#written) if (nowMs - at >= resolutionMs) this.#written.delete(id);
    for (const id of ids) this.#written.set(id, nowMs);
  }
}
