// One visitor's request and its response. The exchange owns the visitor's side of both; each try at an instance is an
// attempt, which owns the other side. The life of an exchange:
//
//   1. `start` chooses an instance and makes an attempt at it.
//   2. An attempt that fails before its response has begun is followed by another, at another instance, as long as the
//      request is safe to repeat, some instance is left and `retryMs` have not passed. Otherwise: an error response.
//   3. The first head of a response decides: the request is counted for that revision, and there are no more attempts.
//   4. Bodies pass through as they come, in both directions, each side going no faster than the other takes them.
//   5. It is over when the response has ended, or broken off with the attempt, or when the visitor goes away, which aborts
//      the attempt. A connection that switches protocols leaves the exchange and becomes a tunnel.
//
// Every request takes this path, so it has callbacks instead of promises, and as few of them as possible.
import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { cookieOf } from '../pick.ts';
import { Attempt, type AttemptFailure, type AttemptOwner } from './attempt.ts';
import { choose } from './choice.ts';
import type { ProxyContext } from './context.ts';
import { answer, type OwnAnswer, own } from './error-responses.ts';
import { codeOf, isOfInstance, isSafeToRepeat, ownAnswerTo } from './failures.ts';
import { answerHeaders, pairsOf } from './forwarding-headers.ts';
import type { Inbound } from './inbound.ts';
import { type Instance, type Side, sideOf, type Way } from './instances.ts';
import { join, writeSwitching } from './tunnel.ts';
import { discardRest, UploadBody } from './upload-body.ts';
import type { VisitorRequest, VisitorResponse } from './visitor.ts';

const none: Instance[] = [];

export class Exchange implements AttemptOwner {
  readonly #context: ProxyContext;
  readonly #request: VisitorRequest;
  readonly #response: VisitorResponse;
  readonly #head: Inbound;
  readonly #upgrade: string | null;
  readonly #startedAt: number;
  /** Set once, in `start`, for a visitor that gets a bucket. */
  #cookie: string | null = null;
  #awaitsContinue: boolean;
  #hearsDrain = false;

  /** The latest. */
  #attempt: Attempt | null = null;
  #tried: Instance[] = none;
  /** All instances were tried, and now they are tried once more. */
  #repeats = false;
  /** The revision that should have answered was charged with an error because it could not. */
  #charged = false;

  constructor(
    context: ProxyContext,
    request: VisitorRequest,
    response: VisitorResponse,
    head: Inbound,
    upgrade: string | null,
    awaitsContinue: boolean,
  ) {
    this.#context = context;
    this.#request = request;
    this.#response = response;
    this.#head = head;
    this.#upgrade = upgrade;
    this.#awaitsContinue = awaitsContinue;
    this.#startedAt = context.clock.now();
  }

  start(way: Way): void {
    const head = this.#head;
    this.#response.on('close', this.#onClosed);
    if (head.bucket === -1) {
      head.bucket = way.nextBucket();
      if (way.canary !== null) this.#cookie = cookieOf(head.bucket);
    }
    if (this.#tryNext(way)) return;
    sideOf(way, head.bucket).counts.countRequest(this.#startedAt, 0, true);
    this.refuse(own.noInstance);
  }

  /** Answers instead of an instance. */
  refuse(what: OwnAnswer): void {
    // After a request that was not understood, what follows may not be understood either.
    const close = this.#context.draining || this.#upgrade !== null || what.closes === true;
    answer(this.#response, what, this.#context.ids('req'), close);
    if (!close && this.#head.hasBody) discardRest(this.#request);
  }

  /** Makes an attempt at the next instance; false where there is none left. */
  #tryNext(way: Way): boolean {
    const nowMs = this.#context.clock.now();
    const wanted = sideOf(way, this.#head.bucket);
    const other = wanted === way.stable ? way.canary : way.stable;
    const instance = choose(wanted, other, nowMs, this.#tried);
    if (instance === null) return false;
    // An instance of both is chosen as one of the wanted side.
    const side = other === null || wanted.instances.includes(instance) ? wanted : other;
    if (side !== wanted && wanted.instances.length > 0 && !this.#charged) {
      this.#charged = true;
      wanted.counts.countRequest(nowMs, nowMs - this.#startedAt, true);
    }
    this.#try(side, instance);
    return true;
  }

  /** The attempt may have failed, and others may have been made, when this returns. */
  #try(side: Side, instance: Instance): void {
    const { path, headers, hasBody } = this.#head;
    const onFirstRead = this.#awaitsContinue ? () => this.#sendContinue() : null;
    const body = hasBody ? new UploadBody(this.#request, onFirstRead) : null;
    this.#attempt = new Attempt(this, side, instance, body);
    this.#attempt.send(path, this.#request.method!, headers, this.#upgrade);
  }

  /** An instance takes the body, so the visitor may send it. */
  #sendContinue(): void {
    if (this.#awaitsContinue && !this.#attempt!.isAborted) this.#response.writeContinue();
    this.#awaitsContinue = false;
  }

  onInformation(status: number, headers: IncomingHttpHeaders): void {
    if (this.#request.httpVersion === '1.0') return;
    this.#response.writeInformation?.(status, answerHeaders(headers, true, false));
  }

  onHead({ side }: Attempt, status: number, headers: IncomingHttpHeaders): void {
    const { method, httpVersion } = this.#request;
    const bodyless = status === 204;
    const mayHaveTrailers = !bodyless && status !== 304 && method !== 'HEAD' && httpVersion !== '1.0';
    const lines = answerHeaders(headers, bodyless, mayHaveTrailers);
    if (this.#cookie !== null) lines.push('set-cookie', this.#cookie);
    if (this.#context.draining) this.#response.shouldKeepAlive = false;
    this.#response.writeHead(status, lines);
    this.#count(side, status >= 500);
  }

  onData(chunk: Buffer): boolean {
    if (this.#response.write(chunk)) return true;
    if (!this.#hearsDrain) {
      this.#hearsDrain = true;
      this.#response.on('drain', () => this.#attempt!.resume());
    }
    return false;
  }

  onEnd(trailers: IncomingHttpHeaders): void {
    const lines = answerHeaders(trailers, true, false);
    if (lines.length > 0) this.#response.addTrailers(pairsOf(lines));
    this.#response.end();
    if (this.#head.hasBody) discardRest(this.#request);
  }

  onSwitch(attempt: Attempt, headers: IncomingHttpHeaders, socket: Duplex): void {
    const visitor = this.#request.socket;
    this.#response.off('close', this.#onClosed).detachSocket?.(visitor);
    this.#count(attempt.side, false);
    writeSwitching(visitor, headers, this.#cookie);
    join(visitor, socket, this.#context.limits.tunnelIdleMs, () => attempt.finish());
  }

  onBreak({ side }: Attempt): void {
    side.counts.countBrokenOff(this.#context.clock.now());
    this.#response.destroy();
  }

  onFailure(failure: AttemptFailure): void {
    const { attempt, error, connected } = failure;
    const { clock, limits, log } = this.#context;
    if (!connected && isOfInstance(error)) {
      attempt.instance.ejectedUntil = clock.now() + limits.ejectMs;
      log.warn({ revision: attempt.side.revision, code: codeOf(error) }, 'an instance takes no connection');
    }
    if (this.#tryAnother(failure)) return;
    const what = ownAnswerTo(error);
    if (what.status >= 500) this.#count(attempt.side, true);
    this.refuse(what);
  }

  #tryAnother({ attempt, error, connected, sent, responseBegun }: AttemptFailure): boolean {
    const { clock, limits, ways } = this.#context;
    const way = ways.find(this.#head.hostName);
    if (!way || responseBegun || clock.now() - this.#startedAt > limits.retryMs) return false;
    if (!isSafeToRepeat(error, this.#request.method!, sent, this.#head.hasBody)) return false;
    if (this.#tried === none) this.#tried = [];
    this.#tried.push(attempt.instance);
    if (this.#tryNext(way)) return true;
    // None is left. That an instance closed a kept connection says nothing against asking it once more.
    if (!connected || this.#repeats) return false;
    this.#repeats = true;
    this.#tried = none;
    return this.#tryNext(way);
  }

  #count(side: Side, failed: boolean): void {
    const nowMs = this.#context.clock.now();
    side.counts.countRequest(nowMs, nowMs - this.#startedAt, failed);
  }

  readonly #onClosed = (): void => {
    const attempt = this.#attempt;
    if (attempt === null || !attempt.isUnderWay) return;
    if (!attempt.isPassedOn) this.#count(attempt.side, false);
    attempt.abort();
  };
}
