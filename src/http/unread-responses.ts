// What clients of an account have asked for and not read yet. It waits in memory, so an account that leaves too much of it
// unread is given nothing more until it reads, or until its connections are closed for not reading.
import type { ServerResponse } from 'node:http';
import { ApiError } from '../contract/errors.ts';

const maxBytes = 16 * 1024 * 1024;
/** Smaller responses do not count: they fit into the buffers of a connection. */
const smallBytes = 16 * 1024;
const retryAfterS = 5;

export class UnreadResponses {
  readonly #bytes = new Map<string, number>();

  /** Counts the response until it has been sent, or its connection has closed. */
  add(accountId: string, body: string, response: ServerResponse): void {
    if (body.length < smallBytes) return;
    this.#bytes.set(accountId, (this.#bytes.get(accountId) ?? 0) + body.length);
    response.once('close', () => {
      const left = this.#bytes.get(accountId)! - body.length;
      if (left === 0) this.#bytes.delete(accountId);
      else this.#bytes.set(accountId, left);
    });
  }

  /** Throws 503 while the account leaves too much unread. */
  require(accountId: string): void {
    if ((this.#bytes.get(accountId) ?? 0) < maxBytes) return;
    throw new ApiError('busy', 'Too many responses of this account have not been read.', {
      headers: { 'Retry-After': String(retryAfterS) },
    });
  }
}
