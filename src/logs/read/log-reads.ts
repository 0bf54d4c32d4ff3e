// How many reads of logs are under way. Each takes memory, connections to the engine and its time, so an account has one at
// a time, and all accounts together have few. Others wait for their turn.
import { ApiError } from '../../contract/errors.ts';

const maxAtOnce = 4;
const maxWaitingPerAccount = 4;
const retryAfterS = 2;

interface WaitingRead {
  accountId: string;
  begin(): void;
}

export class LogReads {
  /** Accounts that have a read under way. */
  readonly #running = new Set<string>();
  readonly #waiting: WaitingRead[] = [];

  /** Throws 503 if too many of the account wait already. */
  async run<T>(accountId: string, read: () => Promise<T>): Promise<T> {
    await this.#turn(accountId);
    try {
      return await read();
    } finally {
      this.#running.delete(accountId);
      this.#beginNext();
    }
  }

  #turn(accountId: string): Promise<void> {
    if (this.#waiting.filter((read) => read.accountId === accountId).length === maxWaitingPerAccount) {
      throw new ApiError('busy', 'Too many reads of logs are under way.', {
        headers: { 'Retry-After': String(retryAfterS) },
      });
    }
    const { promise, resolve: begin } = Promise.withResolvers<void>();
    this.#waiting.push({ accountId, begin });
    this.#beginNext();
    return promise;
  }

  /** In the order in which they came, but none waits for another account's. */
  #beginNext(): void {
    if (this.#running.size === maxAtOnce) return;
    const next = this.#waiting.findIndex(({ accountId }) => !this.#running.has(accountId));
    if (next === -1) return;
    const [{ accountId, begin }] = this.#waiting.splice(next, 1) as [WaitingRead];
    this.#running.add(accountId);
    begin();
  }
}
