// How many reads of logs are under way. Each takes memory, connections to the engine and its time, so there are few at
// once, and fewer of one account.
import { ApiError } from '../../contract/errors.ts';

const maxAtOnce = 4;
const maxPerAccount = 2;
const retryAfterS = 2;

export class LogReads {
  readonly #running = new Map<string, number>();

  /** Throws 503 if there are too many. */
  async run<T>(accountId: string, read: () => Promise<T>): Promise<T> {
    const own = this.#running.get(accountId) ?? 0;
    const all = this.#running.values().reduce((sum, count) => sum + count, 0);
    if (own >= maxPerAccount || all >= maxAtOnce) {
      throw new ApiError('busy', 'Too many reads of logs are under way.', {
        headers: { 'Retry-After': String(retryAfterS) },
      });
    }
    this.#running.set(accountId, own + 1);
    try {
      return await read();
    } finally {
      const left = this.#running.get(accountId)! - 1;
      if (left === 0) this.#running.delete(accountId);
      else this.#running.set(accountId, left);
    }
  }
}
