// HTTP/1.1, from the listener without TLS and, once their handshake is done, from connections with it.
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ProxyContext } from '../context.ts';
import { errorResponses, sendRawErrorResponse } from '../error-responses.ts';
import { codeOf } from '../failures.ts';
import { clientIdleMs } from '../limits.ts';
import { serveRequest } from '../serve-request.ts';
import type { Certificates } from '../tls/certificates.ts';
import { answerChallenge, isChallenge } from '../tls/challenges.ts';

/** How long a client may take to close after us. */
const lingerMs = 5000;

export function createHttp1Server(context: ProxyContext, certificates: Certificates | null): Server {
  const { limits } = context;
  const server = createServer({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.requestHeadMs,
    requestTimeout: 0, // an upload may take as long as it likes, as long as it moves
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: Math.min(1000, limits.requestHeadMs),
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: isUpgrade,
  });
  server.maxHeadersCount = 0; // Node drops what is beyond; the exchange counts, and refuses
  server.maxConnections = limits.connections;
  server.timeout = clientIdleMs(limits);
  server.on('request', (request, response) => {
    if (certificates !== null && isChallenge(request)) void challenge(context, certificates, request, response);
    else serveRequest(context, request, response);
  });
  server.on('checkContinue', (request, response) => serveRequest(context, request, response, true));
  server.on('upgrade', (request, socket, head) => upgrade(context, request, socket as Socket, head));
  server.on('connect', (_, socket) => sendRawErrorResponse(socket, errorResponses.badMethod, context.ids('req')));
  server.on('clientError', (error, socket) => refuse(context, error, socket));
  return server;
}

async function challenge(
  context: ProxyContext,
  certificates: Certificates,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (await answerChallenge(certificates, context.log, request, response)) return;
  serveRequest(context, request, response);
}

/** HTTP/2 without TLS is not spoken, and passing its upgrade on would open a way past the routing. */
const isUpgrade = ({ headers }: IncomingMessage): boolean => !/\bh2c?\b/i.test(headers.upgrade ?? '');

function upgrade(context: ProxyContext, request: IncomingMessage, socket: Socket, head: Buffer): void {
  socket.on('error', () => {}); // its end is heard as a close
  context.upgrades.add(socket);
  socket.once('close', () => context.upgrades.delete(socket));
  const response = new ServerResponse(request);
  try {
    response.assignSocket(socket);
  } catch {
    socket.destroy(); // the answer to an earlier request of this connection is still under way
    return;
  }
  if (head.length > 0) socket.unshift(head);
  response.shouldKeepAlive = false;
  // Where the instance does not switch, what the client sent on is for nobody.
  response.once('finish', () => {
    socket.end();
    socket.resume().setTimeout(lingerMs, () => socket.destroy());
  });
  serveRequest(context, request, response, false, request.headers.upgrade!);
}

/** Bytes that are no request, or came too slowly. */
function refuse({ ids }: ProxyContext, error: Error, socket: Duplex & { _httpMessage?: ServerResponse | null }): void {
  // Where an answer has begun, anything else would be taken for a part of it.
  const code = codeOf(error);
  if (!socket.writable || socket._httpMessage?.headersSent || code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const what =
    code === 'HPE_HEADER_OVERFLOW'
      ? errorResponses.headTooLarge
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? errorResponses.tooSlow
        : errorResponses.badRequest;
  sendRawErrorResponse(socket, what, ids('req'));
}
