// One try at one instance. It owns what belongs to this try alone: its place among the instance's requests under way,
// the connection it was given, and the copy of the request body on its way there. It reports to the exchange that
// started it until it has ended, failed or been aborted.
//
//   connecting ──▶ connected ──▶ begun ──▶ responding ──▶ over
//
// An attempt that fails before `begun` may be followed by another. `aborted` can follow any state but `over`.
import { type Duplex, Readable } from 'node:stream';
import { silentInstance } from './failures.ts';
import type { ConnectionUser, InstanceConnection } from './instance-connections.ts';
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

/** The exchange, as its attempt sees it. Lines are names, in lower case, and values in turn. */
export interface AttemptOwner {
  /** False: that was one too many. */
  onInformation(status: number, lines: string[]): boolean;
  onHead(attempt: Attempt, status: number, lines: string[]): void;
  /** The bytes are valid during the call only. False: the visitor takes no more for now, and `resume` follows when it does. */
  onData(bytes: Buffer): boolean;
  onEnd(trailers: string[]): void;
  /** From here on the exchange owns the socket, and calls `finish` when it is closed. */
  onSwitch(attempt: Attempt, lines: string[], socket: Duplex): void;
  /** Whether it would be followed by another, at another instance, if it failed now. */
  mayLeave(attempt: Attempt): boolean;
  /** Before the head of a response. */
  onFailure(failure: AttemptFailure): void;
  /** After the head of a response. */
  onBreak(attempt: Attempt): void;
}

const visitorGone = new Error('the visitor went away');

export class Attempt implements ConnectionUser {
  readonly backend: Backend;
  readonly instance: Instance;
  readonly sentAtMs: number;
  readonly #owner: AttemptOwner;
  readonly #body: UploadBody | null;
  /** All of the proxy that wait for a response. */
  readonly #waiting: Set<Attempt>;
  #state: AttemptState = 'connecting';
  #connection: InstanceConnection | null = null;

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

  /** Where the request is refused, the owner's `onFailure` is called before this returns. */
  send(path: string, method: string, headers: string[], upgrade: string | null, anew: boolean): void {
    this.instance.connections().send({ path, method, headers, body: this.#body, upgrade, anew }, this);
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
    this.#connection?.destroy(visitorGone);
  }

  /** Fails for an instance that does not answer; false: it waits on, because the request cannot be sent elsewhere. */
  leave(): boolean {
    if (this.#state !== 'connected' || !this.#owner.mayLeave(this)) return false;
    this.#connection!.destroy(silentInstance);
    return true;
  }

  resume(): void {
    this.#connection?.resume();
  }

  finish(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#waiting.delete(this);
    this.instance.underWay--;
  }

  onConnected(connection: InstanceConnection): void {
    this.#connection = connection;
    if (this.#state === 'aborted') connection.destroy(visitorGone);
    else {
      this.#state = 'connected';
      this.#waiting.add(this);
    }
  }

  onBegun(): void {
    if (this.#state !== 'connected') return;
    this.#state = 'begun';
    this.#waiting.delete(this);
  }

  onInformation(status: number, lines: string[]): boolean {
    return this.#state === 'aborted' || this.#owner.onInformation(status, lines);
  }

  onHead(status: number, lines: string[]): void {
    if (this.#state === 'aborted') return;
    // Headers that cannot be written make this throw; the connection then fails the request, and no head was passed on.
    this.#owner.onHead(this, status, lines);
    this.#state = 'responding';
  }

  onData(bytes: Buffer): boolean {
    return this.#state === 'aborted' || this.#owner.onData(bytes);
  }

  onEnd(trailers: string[]): void {
    const aborted = this.#state === 'aborted';
    this.#connection = null;
    this.#body?.destroy();
    this.finish();
    if (!aborted) this.#owner.onEnd(trailers);
  }

  onSwitch(lines: string[], to: Duplex): void {
    this.#connection = null;
    if (this.#state === 'aborted') {
      to.destroy();
      this.finish();
      return;
    }
    this.#state = 'responding';
    this.#owner.onSwitch(this, lines, to);
  }

  onError(error: Error): void {
    const state = this.#state;
    this.#connection = null;
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
