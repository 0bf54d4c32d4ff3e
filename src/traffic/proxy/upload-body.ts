// The body of a request on its way to one instance. It reads from the visitor only while the instance takes more. Where
// an attempt fails before a byte was read, the next attempt gets a new body from the same request.
import { Readable } from 'node:stream';
import type { VisitorRequest } from './visitor-messages.ts';

/** A visitor that is cut off while it sends may not read the response, so it gets this long to finish sending. */
const lingerMs = 10_000;

/** For a response that ended before its request: reads and drops the rest of the request. */
export function discardRest(request: VisitorRequest): void {
  if (request.complete) return;
  request.resume();
  const timer = setTimeout(() => !request.complete && request.destroy(), lingerMs).unref();
  request.once('close', () => clearTimeout(timer));
}

export class UploadBody extends Readable {
  /** Some of the body was read from the visitor, so it cannot be sent again. */
  begun = false;
  readonly #from: VisitorRequest;
  #onFirstRead: (() => void) | null;

  constructor(from: VisitorRequest, onFirstRead: (() => void) | null) {
    super({ highWaterMark: 65_536 });
    this.#from = from;
    this.#onFirstRead = onFirstRead;
    this.on('error', () => {}); // the attempt reports it
    from.pause();
    from.on('data', this.#onData).on('end', this.#onEnd);
  }

  readonly #onData = (chunk: Buffer): void => {
    this.begun = true;
    if (!this.push(chunk)) this.#from.pause();
  };

  readonly #onEnd = (): void => {
    this.begun = true;
    if (!this.#from.complete) return; // the visitor broke it off: the response closes, and the exchange aborts
    this.push(null);
  };

  override _read(): void {
    this.#onFirstRead?.();
    this.#onFirstRead = null;
    this.#from.resume();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#from.off('data', this.#onData).off('end', this.#onEnd);
    if (!this.#from.readableEnded) this.#from.pause();
    done(error);
  }
}
