// Serves HTTP/2 on a TLS connection. Each stream is a request like any other. Extended CONNECT (WebSocket over HTTP/2,
// RFC 8441) is not offered: browsers open an HTTP/1.1 connection for a WebSocket instead.
import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { METHODS } from '../../lib/node-http.ts';
import { type ErrorResponse, errorResponses, sendErrorResponse } from './error-responses.ts';
import type { ProxyContext } from './exchange.ts';
import { pairsOf } from './headers.ts';
import { type Http2Head, readHttp2Head } from './http2-head.ts';
import { clientIdleMs, type ProxyLimits } from './limits.ts';
import { serveRequest } from './serve-request.ts';
import type { VisitorRequest, VisitorResponse } from './visitor-messages.ts';

/** How long an idle session may take to close. */
const lingerMs = 5000;
const quiet = () => {};
const methods = new Set(METHODS);

const optionsOf = (limits: ProxyLimits) => ({
  settings: {
    maxConcurrentStreams: limits.streams,
    // Twice what is allowed, so that a head that is only somewhat too large gets 431, not a reset.
    maxHeaderListSize: limits.headerBytes * 2,
    initialWindowSize: limits.streamWindowBytes,
  },
  // More than allowed, because cookies that are split over several lines become one.
  maxHeaderListPairs: limits.headerCount * 4,
  maxSessionMemory: limits.sessionMegabytes,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  streamResetBurst: limits.streamResets,
  streamResetRate: limits.streamResetsPerSecond,
  strictSingleValueFields: false, // a header that an instance sends twice is passed on twice, as with HTTP/1.1
});

/** `sessions`: filled with those that are open. The HTTP server does not track them. */
export function serveHttp2(context: ProxyContext, socket: TLSSocket, sessions: Set<ServerHttp2Session>): void {
  const { limits } = context;
  socket.allowHalfOpen = false; // HTTP/2 has GOAWAY to say that one end is done
  const session = performServerHandshake(socket, optionsOf(limits));
  session.setLocalWindowSize(limits.sessionWindowBytes);
  sessions.add(session);
  let open = 0;
  session.on('error', quiet); // a close follows
  session.once('close', () => sessions.delete(session));
  session.on('stream', (stream, headers, _flags, rawHeaders) => {
    stream.on('error', quiet);
    if (stream.closed || stream.destroyed) return; // reset right after its head
    open++;
    stream.once('close', () => open--);
    stream.once('aborted', () => setImmediate(endAborted, stream));
    serveStream(context, stream, new Http2Response(stream, headers[':method'] === 'HEAD'), rawHeaders, socket);
  });
  session.on('timeout', () => {
    if (open === 0) closeIdle(session);
    else session.setTimeout(limits.keepAliveMs);
  });
  session.setTimeout(limits.keepAliveMs);
}

/**
 * Node keeps a stream that the visitor reset with NO_ERROR until its response has ended, which nobody waits for any more:
 * its trailers are never asked for, so it would hold its instance for ever.
 */
function endAborted(stream: ServerHttp2Stream): void {
  if (stream.rstCode === constants.NGHTTP2_NO_ERROR) stream.destroy();
}

function serveStream(
  context: ProxyContext,
  stream: ServerHttp2Stream,
  response: Http2Response,
  raw: string[],
  socket: TLSSocket,
): void {
  stream.setTimeout(clientIdleMs(context.limits), () => stream.close(constants.NGHTTP2_CANCEL));
  const head = readHttp2Head(raw, stream.endAfterHeaders);
  const refusal: ErrorResponse | null =
    head === null
      ? errorResponses.badRequest
      : head.bytes > context.limits.headerBytes
        ? errorResponses.headTooLarge
        : methods.has(head.method)
          ? null
          : errorResponses.badMethod;
  if (refusal !== null) {
    sendErrorResponse(response, refusal, context.ids('req'), false);
    return;
  }
  serveRequest(context, new Http2Request(stream, head!, socket), response, head!.expectsContinue);
}

/**
 * Sends GOAWAY with the id of the last stream that is served: streams under way finish, and the client knows that it
 * can safely repeat later ones elsewhere. The two GOAWAYs that RFC 9113, 6.8 suggests are not possible: nghttp2 accepts
 * no streams after the first.
 */
export function drainSession(session: ServerHttp2Session): void {
  session.close();
}

/** The client may be gone without having closed the connection, so the session is destroyed if it does not respond. */
function closeIdle(session: ServerHttp2Session): void {
  session.close();
  const timer = setTimeout(() => session.destroy(), lingerMs).unref();
  session.once('close', () => clearTimeout(timer));
}

/** An HTTP/2 stream as a visitor's request. Listeners go straight to the stream. */
class Http2Request implements VisitorRequest {
  readonly method: string;
  readonly url: string;
  readonly httpVersion = '2.0';
  readonly rawHeaders: string[];
  readonly socket: Socket;
  complete: boolean;
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream, { method, path, rawHeaders }: Http2Head, socket: Socket) {
    this.#stream = stream;
    this.method = method;
    this.url = path;
    this.rawHeaders = rawHeaders;
    this.socket = socket;
    this.complete = stream.endAfterHeaders;
    // A reset with NO_ERROR also emits `end`, but on a closed stream: then the request is not complete.
    if (!this.complete) {
      stream.once('end', () => {
        this.complete = !stream.closed;
      });
    }
  }

  get readableEnded(): boolean {
    return this.#stream.readableEnded;
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  on(event: 'data' | 'end', listener: (chunk: Buffer) => void): this {
    this.#stream.on(event, listener);
    return this;
  }

  off(event: 'data' | 'end', listener: (chunk: Buffer) => void): this {
    this.#stream.off(event, listener);
    return this;
  }

  once(event: 'close', listener: () => void): this {
    this.#stream.once(event, listener);
    return this;
  }

  destroy(): void {
    this.#stream.close();
  }
}

/** HTTP/1.1 only: HTTP/2 streams throw on them. */
const dropped = new Set(['connection', 'http2-settings']);
const bodyless = new Set([204, 205, 304]);

function byName(pairs: readonly [string, string][]): Record<string, string[]> {
  const groups = Map.groupBy(
    pairs.filter(([name]) => !dropped.has(name)),
    ([name]) => name,
  );
  return Object.fromEntries([...groups].map(([name, group]) => [name, group.map(([, value]) => value)]));
}

/**
 * An HTTP/2 stream as the response to a visitor. Writing to a stream that was reset does nothing: as with a
 * connection of HTTP/1.1, its `close` is the only sign.
 */
class Http2Response implements VisitorResponse {
  /** Has no effect: sessions are drained as a whole. */
  shouldKeepAlive = true;
  readonly #stream: ServerHttp2Stream;
  readonly #isHead: boolean;
  #hasBody = true;
  #trailers: Record<string, string[]> = {};

  constructor(stream: ServerHttp2Stream, isHead: boolean) {
    this.#stream = stream;
    this.#isHead = isHead;
  }

  get #isOver(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }

  writeHead(status: number, lines: string[]): void {
    const stream = this.#stream;
    if (this.#isOver) return;
    // Node accepts undefined status codes up to 999 over HTTP/1.1, but none above 599 over HTTP/2.
    const headers = [':status', String(status > 599 ? 502 : status)];
    let hasLength = false;
    for (let i = 0; i < lines.length; i += 2) {
      const name = lines[i]!;
      if (dropped.has(name)) continue;
      if (name === 'content-length') hasLength = true;
      headers.push(name, lines[i + 1]!);
    }
    this.#hasBody = !this.#isHead && !bodyless.has(status);
    // An instance can send trailers only where it sent no length.
    const waitForTrailers = this.#hasBody && !hasLength;
    if (waitForTrailers) stream.once('wantTrailers', () => stream.sendTrailers(this.#trailers));
    stream.respond(headers, { waitForTrailers });
  }

  write(chunk: Buffer | string, encoding: BufferEncoding = 'latin1'): boolean {
    return !this.#hasBody || this.#isOver || this.#stream.write(chunk, encoding);
  }

  addTrailers(trailers: readonly [string, string][]): void {
    this.#trailers = byName(trailers);
  }

  end(text?: string): void {
    if (this.#isOver) return;
    if (text !== undefined && this.#hasBody) this.#stream.end(text);
    else this.#stream.end();
  }

  writeContinue(): void {
    this.writeInformation(100, []);
  }

  writeInformation(status: number, lines: string[]): void {
    if (this.#isOver || this.#stream.headersSent || status === 101) return;
    this.#stream.additionalHeaders({ ':status': status, ...byName(pairsOf(lines)) });
  }

  destroy(): void {
    this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  }

  on(event: 'close' | 'drain', listener: () => void): this {
    this.#stream.on(event, listener);
    return this;
  }

  off(event: 'close', listener: () => void): this {
    this.#stream.off(event, listener);
    return this;
  }
}
