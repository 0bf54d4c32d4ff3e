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
import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { cookieOf } from '../balance.ts';
import { type Outcome, outcomeOf } from '../measure/measurements.ts';
import { Attempt, type AttemptFailure, type AttemptOwner } from './attempt.ts';
import { chooseInstance } from './choose-instance.ts';
import type { ProxyContext } from './context.ts';
import { type ErrorResponse, errorResponses, sendErrorResponse } from './error-responses.ts';
import { codeOf, errorResponseTo, isOfInstance, isSafeToRepeat } from './failures.ts';
import type { Instance } from './instance.ts';
import { refuseRequest } from './refuse-request.ts';
import type { RequestHead } from './request/request-headers.ts';
import { pairsOf, responseHeaders } from './response-headers.ts';
import { type Backend, backendOf, type ProxyRoute } from './route-table.ts';
import { join, writeSwitching } from './tunnel.ts';
import { discardRest, UploadBody } from './upload-body.ts';
import type { VisitorRequest, VisitorResponse } from './visitor-messages.ts';

const none: Instance[] = [];

export class Exchange implements AttemptOwner {
  readonly #context: ProxyContext;
  readonly #request: VisitorRequest;
  readonly #response: VisitorResponse;
  readonly #head: RequestHead;
  readonly #upgrade: string | null;
  readonly #startedAt: number;
  /** For a visitor that comes without a bucket while there is a canary; `start` sets it. */
  #cookie: string | null = null;
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
    this.#startedAt = context.steady.now();
  }

  start(route: ProxyRoute): void {
    const head = this.#head;
    this.#response.on('close', this.#onClosed);
    if (head.bucket === -1) {
      head.bucket = route.nextBucket();
      if (route.canary !== null) this.#cookie = cookieOf(head.bucket);
    }
    if (this.#tryNext(route)) return;
    backendOf(route, head.bucket).counter.countRequest(this.#context.clock.now(), 0, 'error');
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
    const nowMs = this.#context.steady.now();
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
    this.#try(backend, instance);
    return true;
  }

  /** The attempt may have failed, and others may have been made, when this returns. */
  #try(backend: Backend, instance: Instance): void {
    const { path, headers, hasBody } = this.#head;
    const onFirstRead = this.#awaitsContinue ? () => this.#sendContinue() : null;
    const body = hasBody ? new UploadBody(this.#request, onFirstRead) : null;
    this.#attempt = new Attempt(this, backend, instance, body);
    this.#attempt.send(path, this.#request.method!, headers, this.#upgrade);
  }

  /** An instance takes the body, so the visitor may send it. */
  #sendContinue(): void {
    if (this.#awaitsContinue && this.#attempt!.isOpen) this.#response.writeContinue();
    this.#awaitsContinue = false;
  }

  /** They are passed on however slowly the visitor reads, so there may not be many. */
  onInformation(status: number, headers: IncomingHttpHeaders): boolean {
    const { informationCount, informationBytes } = this.#context.limits;
    const lines = responseHeaders(headers, true, false);
    this.#informed.count++;
    this.#informed.bytes += lines.reduce((sum, text) => sum + text.length + 2, 0);
    if (this.#informed.count > informationCount || this.#informed.bytes > informationBytes) return false;
    if (this.#request.httpVersion !== '1.0') this.#response.writeInformation?.(status, lines);
    return true;
  }

  onHead({ backend }: Attempt, status: number, headers: IncomingHttpHeaders): void {
    const { method, httpVersion } = this.#request;
    const bodyless = status === 204;
    const mayHaveTrailers = !bodyless && status !== 304 && method !== 'HEAD' && httpVersion !== '1.0';
    const lines = responseHeaders(headers, bodyless, mayHaveTrailers);
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

  onData(chunk: Buffer): boolean {
    this.#isHeadHeld = false;
    if (this.#response.write(chunk)) return true;
    if (!this.#listensForDrain) {
      this.#listensForDrain = true;
      this.#response.on('drain', () => this.#attempt!.resume());
    }
    return false;
  }

  onEnd(trailers: IncomingHttpHeaders): void {
    this.#isHeadHeld = false;
    const lines = responseHeaders(trailers, true, false);
    if (lines.length > 0) this.#response.addTrailers(pairsOf(lines));
    this.#response.end();
    if (this.#head.hasBody) discardRest(this.#request);
  }

  onSwitch(attempt: Attempt, headers: IncomingHttpHeaders, socket: Duplex): void {
    const visitor = this.#request.socket;
    this.#response.off('close', this.#onClosed).detachSocket?.(visitor);
    this.#count(attempt.backend, 'ok');
    writeSwitching(visitor, headers, this.#cookie);
    join(visitor, socket, this.#context.limits.tunnelIdleMs, () => attempt.finish());
  }

  onBreak({ backend }: Attempt): void {
    this.#isHeadHeld = false;
    backend.counter.countBrokenOff(this.#context.clock.now());
    this.#response.destroy();
  }

  onFailure(failure: AttemptFailure): void {
    const { attempt, error, connected } = failure;
    const { steady, limits, log, failedRequests } = this.#context;
    if (!connected && isOfInstance(error)) {
      attempt.instance.ejectedUntil = steady.now() + limits.ejectMs;
      log.warn({ revision: attempt.backend.revision, code: codeOf(error) }, 'an instance takes no connection');
    }
    if (this.#tryAnother(failure)) return;
    const response = errorResponseTo(error);
    const requestId = this.refuse(response);
    if (response.status < 500) return;
    this.#count(attempt.backend, 'error');
    failedRequests.note({
      requestId,
      host: this.#head.hostName,
      revision: attempt.backend.revision,
      status: response.status,
      code: codeOf(error),
      reason: error.message,
      tookMs: Math.round(steady.now() - this.#startedAt),
    });
  }

  #tryAnother({ attempt, error, connected, sent, responseBegun }: AttemptFailure): boolean {
    const { steady, limits, routes } = this.#context;
    const route = routes.find(this.#head.hostName);
    if (!route || responseBegun || steady.now() - this.#startedAt > limits.retryMs) return false;
    if (!isSafeToRepeat(error, this.#request.method!, sent, this.#head.hasBody)) return false;
    if (this.#tried === none) this.#tried = [];
    this.#tried.push(attempt.instance);
    if (this.#tryNext(route)) return true;
    // None is left. That an instance closed a kept connection says nothing against asking it once more.
    if (!connected || this.#inSecondRound) return false;
    this.#inSecondRound = true;
    this.#tried = none;
    return this.#tryNext(route);
  }

  #count(backend: Backend, outcome: Outcome): void {
    const { clock, steady } = this.#context;
    backend.counter.countRequest(clock.now(), steady.now() - this.#startedAt, outcome);
  }

  readonly #onClosed = (): void => {
    const attempt = this.#attempt;
    if (attempt === null || !attempt.isOpen) return;
    if (!attempt.isResponding) this.#count(attempt.backend, 'ok');
    attempt.abort();
  };
}
