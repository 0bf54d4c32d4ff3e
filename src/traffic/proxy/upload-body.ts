// The body of a request on its way to one instance. It reads from the client only while the instance takes more. Where
// the attempt fails before a byte was taken, the next attempt makes a new one of the same request.
import { Readable } from 'node:stream';
import type { VisitorRequest } from './visitor-messages.ts';

/** How long the rest of a request is taken in after its answer, so that the answer can be read, before the end. */
const lingerMs = 10_000;

/** For an answer that came before the whole request: what is left of it is read and dropped. */
export function discardRest(request: VisitorRequest): void {
  if (request.complete) return;
  request.resume();
  const timer = setTimeout(() => !request.complete && request.destroy(), lingerMs).unref();
  request.once('close', () => clearTimeout(timer));
}

export class UploadBody extends Readable {
  /** Something of the body is on its way; the request cannot be made again. */
  begun = false;
  readonly #from: VisitorRequest;
  #onFirstRead: (() => void) | null;

  constructor(from: VisitorRequest, onFirstRead: (() => void) | null) {
    super({ highWaterMark: 65_536 });
    this.#from = from;
    this.#onFirstRead = onFirstRead;
    this.on('error', () => {}); // the attempt that it belongs to tells
    from.pause();
    from.on('data', this.#onData).on('end', this.#onEnd);
  }

  readonly #onData = (chunk: Buffer): void => {
    this.begun = true;
    if (!this.push(chunk)) this.#from.pause();
  };

  readonly #onEnd = (): void => {
    this.begun = true;
    if (!this.#from.complete) return; // the visitor broke it off, and the exchange will hear of it
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
