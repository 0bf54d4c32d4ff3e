// One visitor's request and its response. The exchange owns the visitor's side of both; each try at an instance is an
// attempt, which owns the other side. The life of an exchange:
//
//   1. `start` chooses an instance and makes an attempt at it.
//   2. An attempt that fails before its response has begun is followed by another, at another instance, as long as the
//      request is safe to repeat, some instance is left and `retryMs` have not passed. Otherwise: an error response.
//   3. The first head of a response decides: the request is counted for that revision, and there are no more attempts.
//   4. Bodies pass through as they come, in both directions, each side going no faster than the other takes them.
//   5. It is over when the response has ended, or broken off with the attempt, or when the visitor goes away, which
//      aborts the attempt. A connection that switches protocols leaves the exchange and becomes a tunnel.
//
// Every request takes this path, so it has callbacks instead of promises, and as few of them as possible.

import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Range } from '../../lib/address.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdSource } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import { cookieOf } from '../balance.ts';
import { type OpenRequest, outcomeOf } from '../measurements.ts';
import { abandonedAfterMs, type Outcome, routePattern, type Unit } from '../request-detail.ts';
import { Attempt, type AttemptFailure, type AttemptOwner, discardRest, UploadBody } from './attempt.ts';
import { type ErrorResponse, errorResponses, refuseRequest, sendErrorResponse } from './error-responses.ts';
import {
  codeOf,
  errorResponseTo,
  type FailedRequests,
  isOfInstance,
  isSafeToRepeat,
  isSilence,
  silentInstance,
} from './failures.ts';
import { headerIn, pairsOf, type RequestHead, responseHeaders } from './headers.ts';
import type { ProxyLimits } from './limits.ts';
import {
  type Backend,
  backendOf,
  chooseInstance,
  type Instance,
  type ProxyRoute,
  type RouteTable,
} from './route-table.ts';
import type { SilentInstances } from './silent-instances.ts';
import type { VisitorRequest, VisitorResponse } from './visitor-messages.ts';

/** What all exchanges of one proxy share. */
export interface ProxyContext {
  /** What is counted is counted at this time. */
  readonly clock: Clock;
  /** Measures how long something took or may take; the other clock may be set meanwhile. */
  readonly monotonic: Clock;
  readonly log: Log;
  readonly failedRequests: FailedRequests;
  readonly limits: ProxyLimits;
  readonly ids: IdSource;
  readonly routes: RouteTable;
  readonly silent: SilentInstances;
  /** Addresses of proxies in front of this one, whose X-Forwarded-* headers are trusted. */
  readonly trustedProxies: readonly Range[];
  /** HTTP/1.1 connections that close with a response that refuses a request: what is behind it is not served. */
  readonly closing: WeakSet<Socket>;
  /** Where plain HTTP requests for a host with a certificate are redirected; null: they are served. */
  httpsPort: number | null;
  draining: boolean;
}

const none: Instance[] = [];

/** Copying more than this costs more than a second piece. */
const joinedBytes = 16 * 1024;

export class Exchange implements AttemptOwner {
  readonly #context: ProxyContext;
  readonly #request: VisitorRequest;
  readonly #response: VisitorResponse;
  readonly #head: RequestHead;
  readonly #upgrade: string | null;
  readonly #startedAt: number;
  /** For a visitor that comes without a bucket while there is a canary; `start` sets it. */
  #cookie: string | null = null;
  /** A canary runs: it is counted whose request it is. */
  #isDetailed = false;
  /** Where it waits for an answer, while a canary runs. */
  #open: { backend: Backend; request: OpenRequest } | null = null;
  #awaitsContinue: boolean;
  #listensForDrain = false;
  /** The head waits for what arrived along with it, to leave in one piece: no longer than that. */
  #isHeadHeld = false;
  /** Responses of the kind 1xx so far. */
  readonly #informed = { count: 0, bytes: 0 };

  /** The latest one, under way or over. */
  #attempt: Attempt | null = null;
  #tried: Instance[] = none;
  /** Every instance was tried, and a second round has begun. */
  #inSecondRound = false;
  /** The backend that the visitor belongs to could not answer, and has been charged with an error for it. */
  #charged = false;

  constructor(
    context: ProxyContext,
    request: VisitorRequest,
    response: VisitorResponse,
    head: RequestHead,
    upgrade: string | null,
    awaitsContinue: boolean,
  ) {
    this.#context = context;
    this.#request = request;
    this.#response = response;
    this.#head = head;
    this.#upgrade = upgrade;
    this.#awaitsContinue = awaitsContinue;
    this.#startedAt = context.monotonic.now();
  }

  start(route: ProxyRoute): void {
    const head = this.#head;
    this.#response.on('close', this.#onClosed);
    if (head.bucket === -1) {
      head.bucket = route.nextBucket();
      if (route.canary !== null) this.#cookie = cookieOf(head.bucket);
    }
    this.#isDetailed = route.canary !== null;
    if (this.#tryNext(route)) return;
    const backend = backendOf(route, head.bucket);
    backend.counter.countRequest(this.#context.clock.now(), 0, 'error', this.#unit());
    this.refuse(errorResponses.noInstance);
  }

  /** Responds without an instance. Gives the request's id. */
  refuse(error: ErrorResponse): string {
    if (error.closes) return refuseRequest(this.#context, this.#request, this.#response, error);
    const requestId = this.#context.ids('req');
    const close = this.#context.draining || this.#upgrade !== null;
    sendErrorResponse(this.#response, error, requestId, close);
    if (!close && this.#head.hasBody) discardRest(this.#request);
    return requestId;
  }

  /** Makes an attempt at the next instance; false where there is none left. */
  #tryNext(route: ProxyRoute): boolean {
    const nowMs = this.#context.monotonic.now();
    const wanted = backendOf(route, this.#head.bucket);
    const other = wanted === route.stable ? route.canary : route.stable;
    const instance = chooseInstance(wanted, other, nowMs, this.#tried);
    if (instance === null) return false;
    // An instance that is in both backends is chosen as one of the wanted.
    const backend = other === null || wanted.instances.includes(instance) ? wanted : other;
    if (backend !== wanted && wanted.instances.length > 0 && !this.#charged) {
      this.#charged = true;
      this.#count(wanted, 'error');
    }
    this.#try(backend, instance, nowMs);
    return true;
  }

  /** The attempt may have failed, and others may have been made, when this returns. */
  #try(backend: Backend, instance: Instance, nowMs: number): void {
    const { path, headers, hasBody } = this.#head;
    const onFirstRead = this.#awaitsContinue ? () => this.#sendContinue() : null;
    const body = hasBody ? new UploadBody(this.#request, onFirstRead) : null;
    this.#attempt = new Attempt(this, backend, instance, body, nowMs, this.#context.silent.waiting);
    if (this.#isDetailed) this.#waitAt(backend);
    this.#attempt.send(path, this.#request.method!, headers, this.#upgrade, this.#inSecondRound);
  }

  /** An instance takes the body, so the visitor may send it. */
  #sendContinue(): void {
    if (this.#awaitsContinue && this.#attempt!.isOpen) this.#response.writeContinue();
    this.#awaitsContinue = false;
  }

  /** They are passed on however slowly the visitor reads, so there may not be many. */
  onInformation(status: number, from: string[]): boolean {
    const { informationCount, informationBytes } = this.#context.limits;
    const lines = responseHeaders(from, true, false);
    this.#informed.count++;
    this.#informed.bytes += lines.reduce((sum, text) => sum + text.length + 2, 0);
    if (this.#informed.count > informationCount || this.#informed.bytes > informationBytes) return false;
    if (this.#request.httpVersion !== '1.0') this.#response.writeInformation?.(status, lines);
    return true;
  }

  onHead({ backend }: Attempt, status: number, from: string[]): void {
    const { method, httpVersion } = this.#request;
    const bodyless = status === 204;
    const mayHaveTrailers = !bodyless && status !== 304 && method !== 'HEAD' && httpVersion !== '1.0';
    const lines = responseHeaders(from, bodyless, mayHaveTrailers);
    if (this.#cookie !== null) lines.push('set-cookie', this.#cookie);
    if (this.#context.draining) this.#response.shouldKeepAlive = false;
    this.#response.writeHead(status, lines);
    this.#isHeadHeld = true;
    process.nextTick(Exchange.#passHeldHead, this);
    this.#count(backend, outcomeOf(status));
  }

  static #passHeldHead(exchange: Exchange): void {
    if (exchange.#isHeadHeld) exchange.#response.flushHeaders?.();
  }

  onData(bytes: Buffer): boolean {
    const isFirst = this.#isHeadHeld;
    this.#isHeadHeld = false;
    if (isFirst ? this.#writeFirst(bytes) : this.#response.write(Buffer.from(bytes))) return true;
    if (!this.#listensForDrain) {
      this.#listensForDrain = true;
      this.#response.on('drain', () => this.#attempt!.resume());
    }
    return false;
  }

  /**
   * Node writes the head and a string that follows it as one string, but a buffer as a second piece. Corking by hand
   * spares the turn in which Node would uncork, and the empty piece that it writes at the end of a corked response.
   */
  #writeFirst(bytes: Buffer): boolean {
    const { socket, chunkedEncoding } = this.#response;
    if (!socket || chunkedEncoding !== false || bytes.length > joinedBytes)
      return this.#response.write(Buffer.from(bytes));
    socket.cork();
    const goesOn = this.#response.write(bytes.toString('latin1'), 'latin1');
    socket.uncork();
    return goesOn;
  }

  onEnd(trailers: string[]): void {
    this.#isHeadHeld = false;
    const lines = responseHeaders(trailers, true, false);
    if (lines.length > 0) this.#response.addTrailers(pairsOf(lines));
    this.#response.end();
    if (this.#head.hasBody) discardRest(this.#request);
  }

  onSwitch(attempt: Attempt, lines: string[], socket: Duplex): void {
    const visitor = this.#request.socket;
    this.#response.off('close', this.#onClosed).detachSocket?.(visitor);
    this.#count(attempt.backend, 'ok');
    writeSwitching(visitor, lines, this.#cookie);
    joinTunnel(visitor, socket, this.#context.limits.tunnelIdleMs, () => attempt.finish());
  }

  onBreak({ backend }: Attempt): void {
    this.#isHeadHeld = false;
    backend.counter.countBrokenOff(this.#context.clock.now(), this.#unit());
    this.#response.destroy();
  }

  mayLeave({ instance }: Attempt): boolean {
    const route = this.#context.routes.find(this.#head.hostName);
    if (!route || !this.#mayRepeat(silentInstance, true)) return false;
    const others = [...route.stable.instances, ...(route.canary?.instances ?? none)];
    return others.some((other) => other !== instance && !this.#tried.includes(other));
  }

  onFailure(failure: AttemptFailure): void {
    const { attempt, error, connected } = failure;
    const { monotonic, limits, log, failedRequests } = this.#context;
    if (!connected && isOfInstance(error)) {
      const { ejectMs, ejectSilentMs } = limits;
      attempt.instance.ejectedUntil = monotonic.now() + (isSilence(error) ? ejectSilentMs : ejectMs);
      log.warn({ revision: attempt.backend.revision, code: codeOf(error) }, 'an instance takes no connection');
    }
    if (this.#tryAnother(failure)) return;
    const response = errorResponseTo(error);
    const requestId = this.refuse(response);
    this.#waitAt(null);
    if (response.status < 500) return;
    this.#count(attempt.backend, 'error');
    failedRequests.note({
      requestId,
      host: this.#head.hostName,
      revision: attempt.backend.revision,
      status: response.status,
      code: codeOf(error),
      reason: error.message,
      tookMs: Math.round(monotonic.now() - this.#startedAt),
    });
  }

  #tryAnother({ attempt, error, connected, sent, responseBegun }: AttemptFailure): boolean {
    const route = this.#context.routes.find(this.#head.hostName);
    if (!route || responseBegun || !this.#mayRepeat(error, sent)) return false;
    if (this.#tried === none) this.#tried = [];
    this.#tried.push(attempt.instance);
    if (this.#tryNext(route)) return true;
    // None is left. That an instance closed a kept connection says nothing against asking it once more.
    if (!connected || this.#inSecondRound) return false;
    this.#inSecondRound = true;
    this.#tried = none;
    return this.#tryNext(route);
  }

  #mayRepeat(error: Error, sent: boolean): boolean {
    const { monotonic, limits } = this.#context;
    if (monotonic.now() - this.#startedAt > limits.retryMs) return false;
    return isSafeToRepeat(error, this.#request.method!, sent, this.#head.hasBody);
  }

  #count(backend: Backend, outcome: Outcome): void {
    const { clock, monotonic } = this.#context;
    this.#waitAt(null);
    backend.counter.countRequest(clock.now(), monotonic.now() - this.#startedAt, outcome, this.#unit());
  }

  /** While a canary runs. */
  #unit(): Unit | null {
    if (!this.#isDetailed) return null;
    const { bucket, path } = this.#head;
    return { bucket, pattern: routePattern(path), instance: this.#attempt?.instance.id ?? '' };
  }

  #waitAt(backend: Backend | null): void {
    if (this.#open !== null) this.#open.backend.counter.close(this.#open.request);
    this.#open = backend && { backend, request: backend.counter.open(this.#startedAt) };
  }

  readonly #onClosed = (): void => {
    const attempt = this.#attempt;
    if (attempt === null || !attempt.isOpen) return;
    if (!attempt.isResponding) {
      const waitedMs = this.#context.monotonic.now() - this.#startedAt;
      this.#count(attempt.backend, waitedMs < abandonedAfterMs ? 'ok' : 'abandoned');
    }
    attempt.abort();
  };
}

/** How long one end may take to close after the other has. */
const lingerMs = 5000;
const quiet = () => {};

type TimedDuplex = Duplex & { setTimeout?(ms: number, onTimeout?: () => void): void };

/** Passes the instance's 101 on to the visitor. */
function writeSwitching(client: Duplex, from: string[], cookie: string | null): void {
  const lines = responseHeaders(from, true, false);
  if (cookie !== null) lines.push('set-cookie', cookie);
  let head = `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${headerIn(from, 'upgrade') ?? ''}\r\n`;
  for (let i = 0; i < lines.length; i += 2) head += `${lines[i]}: ${lines[i + 1]}\r\n`;
  client.write(`${head}\r\n`, 'latin1');
}

/** Joins two sockets until both are closed. An end is passed on after the data before it; so is a reset. */
function joinTunnel(client: TimedDuplex, instance: TimedDuplex, idleMs: number, onClosed: () => void): void {
  let open = 2;
  const carry = (one: TimedDuplex, other: TimedDuplex) => {
    one.on('error', quiet);
    one.once('close', (broken?: boolean) => {
      if (broken) other.destroy();
      else other.end();
      other.setTimeout?.(lingerMs, () => other.destroy());
      if (--open === 0) onClosed();
    });
    // Each socket carries both directions, so it is idle only when both are.
    one.setTimeout?.(idleMs, () => one.destroy());
    one.pipe(other);
  };
  carry(client, instance);
  carry(instance, client);
}
