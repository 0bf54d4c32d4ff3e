// HTTP/2 on a connection with TLS. Each stream is an exchange like any other. Extended CONNECT (WebSocket over HTTP/2,
// RFC 8441) is not offered: browsers then open a connection of HTTP/1.1 for a WebSocket.
import { METHODS } from 'node:http';
import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { ProxyContext } from '../context.ts';
import { type ErrorResponse, errorResponses, sendErrorResponse } from '../error-responses.ts';
import { clientIdleMs, type ProxyLimits } from '../limits.ts';
import { serveRequest } from '../serve-request.ts';
import { readHttp2Head } from './head.ts';
import { Http2Request } from './request.ts';
import { Http2Response } from './response.ts';

/** How long a session may take to close after it was asked to. */
const lingerMs = 5000;
const quiet = () => {};
const methods = new Set(METHODS);

const optionsOf = (limits: ProxyLimits) => ({
  settings: {
    maxConcurrentStreams: limits.streams,
    // Twice what is allowed, so that a head which is only somewhat too large is answered with 431, not with a reset.
    maxHeaderListSize: limits.headerBytes * 2,
    initialWindowSize: limits.streamWindowBytes,
  },
  // Cookies come in crumbs, which are one line later.
  maxHeaderListPairs: limits.headerCount * 4,
  maxSessionMemory: limits.sessionMegabytes,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  streamResetBurst: limits.streamResets,
  streamResetRate: limits.streamResetsPerSecond,
  strictSingleValueFields: false, // what an instance says twice is passed on twice, as with HTTP/1.1
});

export function serveHttp2(context: ProxyContext, socket: TLSSocket): void {
  const { limits, sessions } = context;
  socket.allowHalfOpen = false; // HTTP/2 says goodbye in its errorResponses words
  const session = performServerHandshake(socket, optionsOf(limits));
  session.setLocalWindowSize(limits.sessionWindowBytes);
  sessions.add(session);
  let open = 0;
  session.on('error', quiet); // its end is heard as a close
  session.once('close', () => sessions.delete(session));
  session.on('stream', (stream, headers, _flags, rawHeaders) => {
    stream.on('error', quiet);
    if (stream.closed || stream.destroyed) return; // taken back in the same breath
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
 * GOAWAY with the last stream that is served: those under way end, and a client knows that it may ask elsewhere for what
 * came later. The gentler way of two GOAWAYs (RFC 9113, 6.8) is not open: after the first one nghttp2 takes no streams.
 */
export function drainSession(session: ServerHttp2Session): void {
  session.close();
}

/** Of a client that may be gone without a word. */
function closeIdle(session: ServerHttp2Session): void {
  session.close();
  const timer = setTimeout(() => session.destroy(), lingerMs).unref();
  session.once('close', () => clearTimeout(timer));
}
