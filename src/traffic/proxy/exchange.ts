// One request and its answer. The request is read once, then attempts are made on instances until one begins to answer;
// from there on everything is passed through as it comes, each side going no faster than the other takes it. Plain
// callbacks instead of promises: this is the path that every request takes.
import type { IncomingHttpHeaders } from 'node:http';
import type { ServerHttp2Session } from 'node:http2';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Range } from '../../lib/address.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdSource } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import { cookieOf } from '../pick.ts';
import { believedPeer } from './believed-peer.ts';
import { choose } from './choice.ts';
import { answer, moved, type OwnAnswer, own } from './error-responses.ts';
import { codeOf, isOfInstance, isSafeToRepeat, ownAnswerTo } from './failures.ts';
import { addForwarding, answerHeaders, type Peer, pairsOf, peerOf, readHead } from './forwarding-headers.ts';
import { type Inbound, readRequest } from './inbound.ts';
import { type Instance, type Side, sideOf, type Way, type Ways } from './instances.ts';
import type { ProxyLimits } from './limits.ts';
import { join, writeSwitching } from './tunnel.ts';
import { discardRest, UploadBody } from './upload-body.ts';
import type { VisitorRequest, VisitorResponse } from './visitor.ts';

export interface Surroundings {
  clock: Clock;
  log: Log;
  limits: ProxyLimits;
  ids: IdSource;
  ways: Ways;
  draining: boolean;
  /** Connections that are, or ask to become, something else than HTTP; the server does not know them any more. */
  upgrades: Set<Duplex>;
  /** Of HTTP/2, which the server does not know either. */
  sessions: Set<ServerHttp2Session>;
  /** Where visitors of a domain with a certificate are sent who come without TLS; null: they are not. */
  httpsPort: number | null;
  /** Whose word about who asks is believed. */
  trustedProxies: readonly Range[];
}

const none: Instance[] = [];
const unread: Inbound = { ...readHead([]), hostName: '', path: '' };
const clientGone = new Error('the client went away');

export class Exchange implements Dispatcher.DispatchHandler {
  readonly #in: Surroundings;
  readonly #request: VisitorRequest;
  readonly #response: VisitorResponse;
  readonly #expectsContinue: boolean;
  readonly #startedAt: number;
  #upgrade: string | null = null;
  #head: Inbound = unread;
  #cookie: string | null = null;

  // The attempt under way.
  #side!: Side;
  #instance: Instance | null = null;
  #controller: Dispatcher.DispatchController | null = null;
  #body: UploadBody | null = null;
  #answerBegun = false;

  // All attempts.
  #tried: Instance[] = none;
  #repeated = false;
  #missed = false;
  #answered = false;
  #gone = false;
  #waitsForDrain = false;
  #continued = false;

  constructor(surroundings: Surroundings, request: VisitorRequest, response: VisitorResponse, expectsContinue = false) {
    this.#in = surroundings;
    this.#request = request;
    this.#response = response;
    this.#expectsContinue = expectsContinue;
    this.#startedAt = surroundings.clock.now();
  }

  start(upgrade: string | null = null): void {
    this.#upgrade = upgrade;
    const read = readRequest(this.#request, this.#in.limits, upgrade !== null);
    if ('status' in read) {
      this.#answerSelf(read);
      return;
    }
    this.#head = read;
    const { trustedProxies } = this.#in;
    const seen = peerOf(this.#request.socket);
    const peer = trustedProxies.length === 0 ? seen : believedPeer(seen, this.#request.rawHeaders, trustedProxies);
    const way = this.#in.ways.find(read.hostName);
    const refusal = this.#refusal(way, peer);
    if (!way || refusal !== null) {
      this.#answerSelf(refusal ?? own.unknownHost);
      return;
    }
    this.#response.on('close', this.#onClosed);
    if (read.bucket === -1) {
      read.bucket = way.nextBucket();
      if (way.canary !== null) this.#cookie = cookieOf(read.bucket);
    }
    addForwarding(read.headers, peer, read.host);
    if (this.#attempt(way)) return;
    sideOf(way, read.bucket).counts.countRequest(this.#startedAt, 0, true);
    this.#answerSelf(own.noInstance);
  }

  /** A visitor with TLS asks for what the certificate was shown for, and one without it goes where TLS is. */
  #refusal(way: Way | undefined, { serverName, proto }: Peer): OwnAnswer | null {
    const { hostName, path } = this.#head;
    if (serverName !== null) return serverName === hostName ? null : own.misdirected;
    const { httpsPort } = this.#in;
    return way?.secure && httpsPort !== null && proto === 'http' ? moved(hostName, httpsPort, path) : null;
  }

  /** Asks the next instance; false where there is none left to ask. */
  #attempt(way: Way): boolean {
    const nowMs = this.#in.clock.now();
    const wanted = sideOf(way, this.#head.bucket);
    const choice = choose(way, wanted, nowMs, this.#tried);
    if (choice === null) return false;
    if (choice.side !== wanted && wanted.instances.length > 0 && !this.#missed) {
      this.#missed = true;
      wanted.counts.countRequest(nowMs, nowMs - this.#startedAt, true);
    }
    this.#ask(choice.side, choice.instance);
    return true;
  }

  #ask(side: Side, instance: Instance): void {
    this.#side = side;
    this.#instance = instance;
    this.#controller = null;
    instance.underWay++;
    this.#body = this.#head.hasBody ? new UploadBody(this.#request, () => this.#continue()) : null;
    instance.pool().dispatch(
      {
        path: this.#head.path,
        method: this.#request.method as Dispatcher.HttpMethod,
        headers: this.#head.headers,
        body: this.#body,
        upgrade: this.#upgrade,
      },
      this,
    );
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#gone) controller.abort(clientGone);
  }

  onResponseStarted(): void {
    this.#answerBegun = true;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (this.#gone) return;
    if (status < 200) {
      this.#inform(status, headers);
      return;
    }
    const response = this.#response;
    const bodyless = status === 204;
    const trailers = !bodyless && status !== 304 && this.#request.method !== 'HEAD';
    const lines = answerHeaders(headers, bodyless, trailers && this.#request.httpVersion !== '1.0');
    if (this.#cookie !== null) lines.push('set-cookie', this.#cookie);
    if (this.#in.draining) response.shouldKeepAlive = false;
    response.writeHead(status, lines);
    this.#count(status >= 500);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#gone || this.#response.write(chunk)) return;
    controller.pause();
    if (this.#waitsForDrain) return;
    this.#waitsForDrain = true;
    this.#response.on('drain', () => this.#controller?.resume());
  }

  onResponseEnd(_: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    this.#release();
    if (this.#gone) return;
    const lines = answerHeaders(trailers, true, false);
    if (lines.length > 0) this.#response.addTrailers(pairsOf(lines));
    this.#response.end();
    if (this.#body !== null) discardRest(this.#request);
  }

  onRequestUpgrade(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders, to: Duplex): void {
    const client = this.#request.socket;
    if (this.#gone || status !== 101) {
      to.destroy();
      this.#release();
      return;
    }
    this.#response.off('close', this.#onClosed).detachSocket?.(client);
    this.#count(false);
    writeSwitching(client, headers, this.#cookie);
    join(client, to, this.#in.limits.tunnelIdleMs, () => this.#release());
  }

  onResponseError(_: unknown, error: Error): void {
    const instance = this.#instance;
    const started = this.#controller !== null;
    const sent = started && (this.#body === null || this.#body.begun);
    this.#body?.destroy();
    this.#release();
    if (this.#gone || instance === null) return;
    const { clock, log } = this.#in;
    if (this.#answered) {
      this.#side.counts.countBrokenOff(clock.now());
      this.#response.destroy();
      return;
    }
    if (!started && isOfInstance(error)) {
      instance.ejectedUntil = clock.now() + this.#in.limits.ejectMs;
      log.warn({ revision: this.#side.revision, code: codeOf(error) }, 'an instance takes no connection');
    }
    if (!this.#tryAnother(instance, started, sent, error)) this.#fail(error);
  }

  #tryAnother(instance: Instance, started: boolean, sent: boolean, error: Error): boolean {
    const { clock, limits, ways } = this.#in;
    const way = ways.find(this.#head.hostName);
    if (!way || this.#answerBegun || clock.now() - this.#startedAt > limits.retryMs) return false;
    if (!isSafeToRepeat(error, this.#request.method!, sent, this.#head.hasBody)) return false;
    if (this.#tried === none) this.#tried = [];
    this.#tried.push(instance);
    if (this.#attempt(way)) return true;
    // Nobody else is left. A kept connection that its instance just closed says nothing against asking it once more.
    if (!started || this.#repeated) return false;
    this.#repeated = true;
    this.#tried = none;
    return this.#attempt(way);
  }

  #fail(error: Error): void {
    const what = ownAnswerTo(error);
    if (what.status >= 500) this.#count(true);
    this.#answerSelf(what);
  }

  /** Counts the request once, for the revision that answers it. */
  #count(failed: boolean): void {
    this.#answered = true;
    const nowMs = this.#in.clock.now();
    this.#side.counts.countRequest(nowMs, nowMs - this.#startedAt, failed);
  }

  #release(): void {
    if (this.#instance) this.#instance.underWay--;
    this.#instance = null;
  }

  #inform(status: number, headers: IncomingHttpHeaders): void {
    if (this.#request.httpVersion === '1.0') return;
    this.#response.writeInformation?.(status, answerHeaders(headers, true, false));
  }

  /** A connection stands and the instance takes the body; who waits for that may send it. */
  #continue(): void {
    if (this.#expectsContinue && !this.#continued && !this.#gone) this.#response.writeContinue();
    this.#continued = true;
  }

  readonly #onClosed = (): void => {
    if (this.#instance === null) return;
    this.#gone = true;
    if (!this.#answered) this.#count(false);
    this.#controller?.abort(clientGone);
  };

  #answerSelf(what: OwnAnswer): void {
    // After a request that was not understood, what follows may not be understood either.
    const close = this.#in.draining || this.#upgrade !== null || what.closes === true;
    answer(this.#response, what, this.#in.ids('req'), close);
    if (!close && this.#head.hasBody) discardRest(this.#request);
  }
}
