// HTTP/1.1, from the listener without TLS and, once their handshake is done, from connections with it.
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { answerRaw, own } from '../error-responses.ts';
import { Exchange, type Surroundings } from '../exchange.ts';
import { codeOf } from '../failures.ts';
import { clientIdleMs } from '../limits.ts';
import type { Certificates } from '../tls/certificates.ts';
import { answerChallenge, isChallenge } from '../tls/challenges.ts';

/** How long a client may take to close after us. */
const lingerMs = 5000;

export function createHttp1Server(around: Surroundings, certificates: Certificates | null): Server {
  const { limits } = around;
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
    if (certificates !== null && isChallenge(request)) void challenge(around, certificates, request, response);
    else new Exchange(around, request, response).start();
  });
  server.on('checkContinue', (request, response) => new Exchange(around, request, response, true).start());
  server.on('upgrade', (request, socket, head) => upgrade(around, request, socket as Socket, head));
  server.on('connect', (_, socket) => answerRaw(socket, own.badMethod, around.ids('req')));
  server.on('clientError', (error, socket) => refuse(around, error, socket));
  return server;
}

async function challenge(
  around: Surroundings,
  certificates: Certificates,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (await answerChallenge(certificates, around.log, request, response)) return;
  new Exchange(around, request, response).start();
}

/** HTTP/2 without TLS is not spoken, and passing its upgrade on would open a way past the routing. */
const isUpgrade = ({ headers }: IncomingMessage): boolean => !/\bh2c?\b/i.test(headers.upgrade ?? '');

function upgrade(around: Surroundings, request: IncomingMessage, socket: Socket, head: Buffer): void {
  socket.on('error', () => {}); // its end is heard as a close
  around.upgrades.add(socket);
  socket.once('close', () => around.upgrades.delete(socket));
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
  new Exchange(around, request, response).start(request.headers.upgrade!);
}

/** Bytes that are no request, or came too slowly. */
function refuse({ ids }: Surroundings, error: Error, socket: Duplex & { _httpMessage?: ServerResponse | null }): void {
  // Where an answer has begun, anything else would be taken for a part of it.
  const code = codeOf(error);
  if (!socket.writable || socket._httpMessage?.headersSent || code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const what =
    code === 'HPE_HEADER_OVERFLOW'
      ? own.headTooLarge
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? own.tooSlow
        : own.badRequest;
  answerRaw(socket, what, ids('req'));
}
