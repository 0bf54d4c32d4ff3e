// Serves HTTP/2 on a TLS connection. Each stream is a request like any other. Extended CONNECT (WebSocket over HTTP/2,
// RFC 8441) is not offered: browsers open an HTTP/1.1 connection for a WebSocket instead.
import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { METHODS } from '../../../lib/node-http.ts';
import type { ProxyContext } from '../context.ts';
import { type ErrorResponse, errorResponses, sendErrorResponse } from '../error-responses.ts';
import { clientIdleMs, type ProxyLimits } from '../limits.ts';
import { serveRequest } from '../serve-request.ts';
import { readHttp2Head } from './head.ts';
import { Http2Request } from './request.ts';
import { Http2Response } from './response.ts';

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

export function serveHttp2(context: ProxyContext, socket: TLSSocket): void {
  const { limits, sessions } = context;
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
    serveStream(context, stream, new Http2Response(stream, headers[':method'] === 'HEAD'), rawHeaders, socket);
  });
  session.on('timeout', () => {
    if (open === 0) closeIdle(session);
    else session.setTimeout(limits.keepAliveMs);
  });
  session.setTimeout(limits.keepAliveMs);
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
