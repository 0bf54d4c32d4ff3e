// One try at one instance. It owns what belongs to this try alone: its place among the instance's requests under way,
// the connection undici gave it, and the copy of the request body on its way there. It reports to the exchange that
// started it until it has ended, failed or been aborted.
//
//   connecting ──▶ connected ──▶ begun ──▶ responding ──▶ over
//
// An attempt that fails before `begun` may be followed by another. `aborted` can follow any state but `over`.
import type { IncomingHttpHeaders } from 'node:http';
import { type Duplex, Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { silentInstance } from './failures.ts';
import type { Backend, Instance } from './route-table.ts';
import type { VisitorRequest } from './visitor-messages.ts';

type AttemptState =
  /** Waits for a connection; the instance knows nothing of the request. */
  | 'connecting'
  /** Has a connection, and sends the request on it. */
  | 'connected'
  /** The first byte of the response has arrived. */
  | 'begun'
  /** The exchange has passed the head of the response on to the visitor. */
  | 'responding'
  /** The visitor is gone: what still arrives is dropped. */
  | 'aborted'
  | 'over';

export interface AttemptFailure {
  attempt: Attempt;
  error: Error;
  connected: boolean;
  /** The instance may have seen the request, or some of its body. */
  sent: boolean;
  responseBegun: boolean;
}

/** The exchange, as its attempt sees it. */
export interface AttemptOwner {
  /** False: that was one too many. */
  onInformation(status: number, headers: IncomingHttpHeaders): boolean;
  onHead(attempt: Attempt, status: number, headers: IncomingHttpHeaders): void;
  /** False: the visitor takes no more for now, and `resume` follows when it does. */
  onData(chunk: Buffer): boolean;
  onEnd(trailers: IncomingHttpHeaders): void;
  /** From here on the exchange owns the socket, and calls `finish` when it is closed. */
  onSwitch(attempt: Attempt, headers: IncomingHttpHeaders, socket: Duplex): void;
  /** Whether it would be followed by another, at another instance, if it failed now. */
  mayLeave(attempt: Attempt): boolean;
  /** Before the head of a response. */
  onFailure(failure: AttemptFailure): void;
  /** After the head of a response. */
  onBreak(attempt: Attempt): void;
}

const visitorGone = new Error('the visitor went away');
const tooMuchInformation = new Error('too many 1xx responses');

export class Attempt implements Dispatcher.DispatchHandler {
  readonly backend: Backend;
  readonly instance: Instance;
  readonly sentAtMs: number;
  readonly #owner: AttemptOwner;
  readonly #body: UploadBody | null;
  /** All of the proxy that wait for a response. */
  readonly #waiting: Set<Attempt>;
  #state: AttemptState = 'connecting';
  #controller: Dispatcher.DispatchController | null = null;

  constructor(
    owner: AttemptOwner,
    backend: Backend,
    instance: Instance,
    body: UploadBody | null,
    sentAtMs: number,
    waiting: Set<Attempt>,
  ) {
    this.#owner = owner;
    this.sentAtMs = sentAtMs;
    this.#waiting = waiting;
    this.backend = backend;
    this.instance = instance;
    this.#body = body;
    instance.underWay++;
  }

  /** Where the pool refuses the request, the owner's `onFailure` is called before this returns. */
  send(path: string, method: string, headers: string[], upgrade: string | null): void {
    const options = { path, method: method as Dispatcher.HttpMethod, headers, body: this.#body, upgrade };
    this.instance.pool().dispatch(options, this);
  }

  get isOpen(): boolean {
    return this.#state !== 'over' && this.#state !== 'aborted';
  }

  get isResponding(): boolean {
    return this.#state === 'responding';
  }

  /** For a visitor that went away. Where there is no connection yet, the attempt ends when there is one. */
  abort(): void {
    this.#state = 'aborted';
    this.#waiting.delete(this);
    this.#controller?.abort(visitorGone);
  }

  /** Fails for an instance that does not answer; false: it waits on, because the request cannot be sent elsewhere. */
  leave(): boolean {
    if (this.#state !== 'connected' || !this.#owner.mayLeave(this)) return false;
    this.#controller!.abort(silentInstance);
    return true;
  }

  resume(): void {
    this.#controller?.resume();
  }

  finish(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#waiting.delete(this);
    this.instance.underWay--;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#state === 'aborted') controller.abort(visitorGone);
    else {
      this.#state = 'connected';
      this.#waiting.add(this);
    }
  }

  onResponseStarted(): void {
    if (this.#state !== 'connected') return;
    this.#state = 'begun';
    this.#waiting.delete(this);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (this.#state === 'aborted') return;
    if (status < 200) {
      if (!this.#owner.onInformation(status, headers)) controller.abort(tooMuchInformation);
      return;
    }
    // Headers that cannot be written make this throw; undici then fails the request, and no head was passed on.
    this.#owner.onHead(this, status, headers);
    this.#state = 'responding';
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#state !== 'aborted' && !this.#owner.onData(chunk)) controller.pause();
  }

  onResponseEnd(_: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    const aborted = this.#state === 'aborted';
    this.finish();
    if (!aborted) this.#owner.onEnd(trailers);
  }

  onRequestUpgrade(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders, to: Duplex): void {
    if (this.#state === 'aborted' || status !== 101) {
      to.destroy();
      this.finish();
      return;
    }
    this.#state = 'responding';
    this.#owner.onSwitch(this, headers, to);
  }

  onResponseError(_: unknown, error: Error): void {
    const state = this.#state;
    this.#body?.destroy();
    this.finish();
    if (state === 'over' || state === 'aborted') return;
    if (state === 'responding') {
      this.#owner.onBreak(this);
      return;
    }
    const connected = state !== 'connecting';
    const sent = connected && (this.#body === null || this.#body.begun);
    this.#owner.onFailure({ attempt: this, error, connected, sent, responseBegun: state === 'begun' });
  }
}

/** A visitor that is cut off while it sends may not read the response, so it gets this long to finish sending. */
const lingerMs = 10_000;

/** For a response that ended before its request: reads and drops the rest of the request. */
export function discardRest(request: VisitorRequest): void {
  if (request.complete) return;
  request.resume();
  const timer = setTimeout(() => !request.complete && request.destroy(), lingerMs).unref();
  request.once('close', () => clearTimeout(timer));
}

/**
 * The body of a request on its way to one instance. It reads from the visitor only while the instance takes more.
 * Where an attempt fails before a byte was read, the next attempt gets a new body from the same request.
 */
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
