// The connections that are kept to one instance, and what they carry: one request at a time, over HTTP/1.1. Every request
// takes this path, so bytes go straight from the socket to the reader of responses and on to the visitor, without
// streams in between.
//
//   connecting ──▶ carrying ⇄ idle
//
// Each of them can be followed by the end of the connection. A connection that switches protocols leaves.
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { codeOf } from './failures.ts';
import { type Head, headOf, type InstanceRequest, isLast, Upload, type UploadOwner } from './instance-request.ts';
import type { ProxyLimits } from './limits.ts';
import { InstanceError, ResponseReader, type ResponseSink } from './response-reader.ts';

/** Who sent a request, as its connection sees it. Lines are names, in lower case, and values in turn. */
export interface ConnectionUser {
  /** Where false, the request is not sent any more. */
  readonly isOpen: boolean;
  onConnected(connection: InstanceConnection): void;
  onBegun(): void;
  /** False: that was one too many. */
  onInformation(status: number, lines: string[]): boolean;
  onHead(status: number, lines: string[]): void;
  /** The bytes are valid during the call only. False: no more for now, `resume` follows. */
  onData(bytes: Buffer): boolean;
  onEnd(trailers: string[]): void;
  onSwitch(lines: string[], socket: Duplex): void;
  /** Called once, unless onEnd or onSwitch were. */
  onError(error: Error): void;
}

interface Waiting {
  request: InstanceRequest;
  head: Head;
  user: ConnectionUser;
}

export class InstanceConnections {
  readonly #target: { host: string; port: number };
  readonly #limits: ProxyLimits;
  readonly #open = new Set<InstanceConnection>();
  readonly #idle: InstanceConnection[] = [];
  #waiting: Waiting[] = [];
  #returned: InstanceConnection[] = [];
  #willHandOut = false;
  #state: 'open' | 'closing' | 'destroyed' = 'open';
  #onEmpty: (() => void)[] = [];

  constructor(target: { host: string; port: number }, limits: ProxyLimits) {
    this.#target = target;
    this.#limits = limits;
  }

  /** Where the request is refused, `onError` is called before this returns. */
  send(request: InstanceRequest, user: ConnectionUser): void {
    const head = headOf(request);
    if (this.#state !== 'open') user.onError(this.#closedError);
    else if (head === null) user.onError(new InstanceError('UND_ERR_INVALID_ARG', 'the request is malformed'));
    else {
      this.#waiting.push({ request, head, user });
      this.#handOutSoon();
    }
  }

  /** Lets requests under way finish; resolves when the last connection is closed. */
  close(): Promise<void> {
    if (this.#state === 'open') this.#state = 'closing';
    for (const connection of [...this.#idle, ...this.#returned]) connection.destroy();
    return this.#emptied();
  }

  destroy(): Promise<void> {
    this.#state = 'destroyed';
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { user } of waiting) user.onError(this.#closedError);
    for (const connection of this.#open) connection.destroy(this.#closedError);
    return this.#emptied();
  }

  /** A response has ended, and its connection can carry another request. */
  giveBack(connection: InstanceConnection): void {
    if (this.#state !== 'open') {
      connection.destroy();
      return;
    }
    this.#returned.push(connection);
    this.#handOutSoon();
  }

  remove(connection: InstanceConnection): void {
    this.#open.delete(connection);
    for (const list of [this.#idle, this.#returned]) {
      const at = list.indexOf(connection);
      if (at !== -1) list.splice(at, 1);
    }
    this.#settle();
  }

  get #closedError(): InstanceError {
    return this.#state === 'destroyed'
      ? new InstanceError('UND_ERR_DESTROYED', 'the connections to the instance were cut off')
      : new InstanceError('UND_ERR_CLOSED', 'the instance takes no more requests');
  }

  #emptied(): Promise<void> {
    return new Promise((resolve) => {
      this.#onEmpty.push(resolve);
      this.#settle();
    });
  }

  #settle(): void {
    if (this.#open.size > 0 || this.#waiting.length > 0) return;
    for (const resolve of this.#onEmpty.splice(0)) resolve();
  }

  #handOutSoon(): void {
    if (this.#willHandOut) return;
    this.#willHandOut = true;
    setImmediate(handOut, this);
  }

  /**
   * Once in each turn of the event loop, after what has arrived was read: a kept connection whose instance has closed it,
   * or sent what nobody asked for, is gone by then. For the same reason one that was given back rests for a turn.
   */
  handOut(): void {
    this.#willHandOut = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const one of waiting) {
      if (one.user.isOpen) this.#connectionFor(one.request).carry(one);
      else one.user.onError(new InstanceError('UND_ERR_ABORTED', 'it was given up'));
    }
    for (const connection of this.#returned) this.#idle.push(connection);
    this.#returned.length = 0;
    this.#settle();
  }

  #connectionFor({ upgrade, anew }: InstanceRequest): InstanceConnection {
    while (upgrade === null && !anew && this.#idle.length > 0) {
      const connection = this.#idle.pop()!;
      if (!connection.isOver) return connection;
    }
    const connection = new InstanceConnection(this, this.#target, this.#limits, upgrade !== null);
    this.#open.add(connection);
    return connection;
  }
}

const handOut = (connections: InstanceConnections): void => connections.handOut();

/** One for all connections: what is read is passed on before the next read. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);
const tcpKeepAliveMs = 60_000;
/** An instance that says for how long it keeps connections may count from earlier on. */
const hintMarginMs = 2000;
const longestIdleMs = 600_000;

export class InstanceConnection implements ResponseSink, UploadOwner {
  readonly #owner: InstanceConnections;
  readonly #limits: ProxyLimits;
  readonly #socket: Socket;
  readonly #reader: ResponseReader;
  readonly #deadline: Deadline;
  /** What it carries, or will once it is connected. */
  #carried: Waiting | null = null;
  #user: ConnectionUser | null = null;
  #upload: Upload | null = null;
  #isConnected = false;
  #isPaused = false;
  #hasHead = false;
  #isLast = false;
  #error: Error | null = null;

  constructor(
    owner: InstanceConnections,
    target: { host: string; port: number },
    limits: ProxyLimits,
    maySwitch: boolean,
  ) {
    this.#owner = owner;
    this.#limits = limits;
    this.#reader = new ResponseReader(this, limits.headerBytes);
    this.#deadline = new Deadline(() => this.#expire());
    const onread = {
      buffer: readBuffer,
      callback: (count: number) => {
        this.#read(readBuffer.subarray(0, count));
        return true;
      },
    };
    const options = { noDelay: true, keepAlive: true, keepAliveInitialDelay: tcpKeepAliveMs };
    // What switches protocols becomes one end of a tunnel, and is read as a stream.
    const socket = connect({ ...target, ...options, ...(maySwitch ? {} : { onread }) });
    if (maySwitch) socket.on('data', (bytes: Buffer) => this.#read(bytes));
    socket.once('connect', () => this.#connected());
    socket.on('error', (error) => {
      // An instance that closes while there is more for it to read resets the connection, with all of a response sent.
      if (codeOf(error) === 'ECONNRESET' && this.#reader.end()) return;
      this.#error ??= error;
    });
    socket.on('end', () => this.#ended());
    socket.on('close', () => this.#closed());
    socket.on('drain', () => this.#upload?.drained());
    this.#socket = socket;
    this.#deadline.set(limits.connectMs);
  }

  get isOver(): boolean {
    return this.#socket.destroyed;
  }

  carry(carried: Waiting): void {
    this.#carried = carried;
    this.#user = carried.user;
    if (this.#isConnected) this.#send();
  }

  resume(): void {
    this.#isPaused = false;
    this.#socket.resume();
  }

  /** The request it carries fails with this error. */
  destroy(error: Error | null = null): void {
    this.#error ??= error;
    this.#reader.stop();
    this.#upload?.stop();
    this.#socket.destroy();
  }

  #connected(): void {
    this.#isConnected = true;
    this.#send();
  }

  #send(): void {
    const { request, head } = this.#carried!;
    const { upgrade, body } = request;
    this.#hasHead = false;
    this.#isLast = upgrade !== null || isLast(request);
    this.#user!.onConnected(this);
    if (this.#socket.destroyed) return;
    this.#deadline.set(this.#limits.answerHeadMs);
    if (body !== null) {
      this.#upload = new Upload(this.#socket, body, head, this);
      return;
    }
    this.onSending();
    this.#socket.write(head.withoutBody, 'latin1');
  }

  /** Not earlier: what arrives before any of the request was sent is no response to it. */
  onSending(): void {
    const { method, upgrade } = this.#carried!.request;
    this.#carried = null;
    this.#reader.expect(method, upgrade !== null);
  }

  onSent(): void {
    this.#deadline.set(this.#hasHead ? this.#limits.idleMs : this.#limits.answerHeadMs);
  }

  #read(bytes: Buffer): void {
    try {
      this.#reader.read(bytes);
    } catch (error) {
      if (!this.#socket.destroyed) this.destroy(error as Error);
    }
  }

  onBegun(): void {
    this.#user!.onBegun();
  }

  onInformation(status: number, lines: string[]): void {
    if (!this.#user!.onInformation(status, lines)) throw new Error('too many 1xx responses');
    this.#deadline.set(this.#limits.answerHeadMs);
  }

  onHead(status: number, lines: string[]): void {
    this.#hasHead = true;
    this.#deadline.set(this.#limits.idleMs);
    this.#user!.onHead(status, lines);
  }

  onData(bytes: Buffer): void {
    this.#deadline.set(this.#limits.idleMs);
    if (this.#user!.onData(bytes) || this.#isPaused) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  onEnd(trailers: string[]): void {
    const user = this.#user!;
    this.#user = null;
    // A response may end before its request, the rest of which would be taken for the next one.
    const isReusable = this.#reader.keepsAlive && !this.#isLast && (this.#upload === null || this.#upload.isOver);
    this.#upload?.stop();
    this.#upload = null;
    const idleMs = isReusable ? this.#idleMs() : 0;
    if (idleMs > 0) {
      if (this.#isPaused) this.resume();
      this.#deadline.set(idleMs);
      this.#owner.giveBack(this);
    } else this.destroy();
    user.onEnd(trailers);
  }

  #idleMs(): number {
    const { keepAliveS } = this.#reader;
    if (keepAliveS === null) return this.#limits.instanceKeepAliveMs;
    return Math.min(keepAliveS * 1000 - hintMarginMs, longestIdleMs);
  }

  onSwitch(lines: string[], rest: Buffer): void {
    const [user, socket] = [this.#user!, this.#socket];
    this.#user = null;
    this.#deadline.clear();
    socket.removeAllListeners().pause();
    if (rest.length > 0) socket.unshift(rest);
    this.#owner.remove(this);
    user.onSwitch(lines, socket);
  }

  #ended(): void {
    if (this.#reader.end()) return;
    this.destroy(new InstanceError('UND_ERR_SOCKET', 'other side closed'));
  }

  #closed(): void {
    this.#deadline.clear();
    this.#upload?.stop();
    this.#owner.remove(this);
    const user = this.#user;
    this.#user = null;
    user?.onError(this.#error ?? new InstanceError('UND_ERR_SOCKET', 'closed'));
  }

  #expire(): void {
    const { answerHeadMs, idleMs } = this.#limits;
    if (!this.#isConnected) this.destroy(new InstanceError('UND_ERR_CONNECT_TIMEOUT', 'no connection in time'));
    else if (this.#user === null) this.destroy();
    else if (this.#hasHead) {
      if (this.#isPaused) this.#deadline.set(idleMs);
      else this.destroy(new InstanceError('UND_ERR_BODY_TIMEOUT', 'no more of the body in time'));
    } else if (this.#upload?.waitsForVisitor) this.#deadline.set(answerHeadMs);
    else this.destroy(new InstanceError('UND_ERR_HEADERS_TIMEOUT', 'no response in time'));
  }
}

/**
 * A time limit that changes with every request. A timer that is set anew each time would cost more than all the rest, so this one
 * is left to fire and looks whether the time is really up.
 */
class Deadline {
  readonly #onExpired: () => void;
  #at = Number.POSITIVE_INFINITY;
  #firesAt = Number.POSITIVE_INFINITY;
  #shortestMs = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;

  constructor(onExpired: () => void) {
    this.#onExpired = onExpired;
  }

  set(ms: number): void {
    const nowMs = performance.now();
    this.#at = nowMs + ms;
    if (ms < this.#shortestMs) this.#shortestMs = ms;
    if (this.#at < this.#firesAt) this.#start(nowMs);
  }

  clear(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#firesAt = Number.POSITIVE_INFINITY;
  }

  /** Never for longer than the shortest limit so far: then the next one needs no other timer. */
  #start(nowMs: number): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#firesAt = Math.min(this.#at, nowMs + this.#shortestMs);
    this.#timer = setTimeout(() => this.#fire(), this.#firesAt - nowMs).unref();
  }

  #fire(): void {
    const nowMs = performance.now();
    this.#firesAt = Number.POSITIVE_INFINITY;
    if (nowMs >= this.#at) this.#onExpired();
    else this.#start(nowMs);
  }
}
