// Serves HTTP/1.1, on plain connections and, after their handshake, on TLS connections.
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Log } from '../../lib/log.ts';
import { createServer, ServerResponse } from '../../lib/node-http.ts';
import { errorResponses, refuseRequest, sendRawErrorResponse } from './error-responses.ts';
import type { ProxyContext } from './exchange.ts';
import { codeOf } from './failures.ts';
import { hostNameOf } from './headers.ts';
import { clientIdleMs } from './limits.ts';
import { serveRequest } from './serve-request.ts';
import type { Certificates } from './tls-listener.ts';

/** How long a client may take to close its end after we closed ours. */
const lingerMs = 5000;

/** `upgrades`: filled with connections that switched protocols, or asked to. The HTTP server no longer tracks them. */
export function createHttp1Server(
  context: ProxyContext,
  certificates: Certificates | null,
  upgrades: Set<Duplex>,
): Server {
  const { limits } = context;
  const server = createServer({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.requestHeadMs,
    requestTimeout: 0, // an upload may take any time as long as it makes progress
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: Math.min(1000, limits.requestHeadMs),
    optimizeEmptyRequests: true,
    requireHostHeader: false, // readRequest refuses it, and closes the connection
    shouldUpgradeCallback: isUpgrade,
  });
  server.maxHeadersCount = 0; // Node would drop excess headers; readRequest refuses the request instead
  server.timeout = clientIdleMs(limits);
  server.on('request', (request, response) => {
    if (isBehindRefused(context, request)) return;
    if (certificates !== null && isChallenge(request)) void challenge(context, certificates, request, response);
    else serveRequest(context, request, response);
  });
  server.on('checkContinue', (request, response) => {
    if (isBehindRefused(context, request)) return;
    // Node closes the connection after a response without 100, and this one never sends it: nothing behind it is read.
    if (!hasBody(request)) context.closing.add(request.socket);
    serveRequest(context, request, response, true);
  });
  server.on('checkExpectation', (request, response) => {
    if (!isBehindRefused(context, request)) refuseRequest(context, request, response, errorResponses.badExpectation);
  });
  server.on('upgrade', (request, socket, head) => {
    upgrades.add(socket);
    socket.once('close', () => upgrades.delete(socket));
    upgrade(context, request, socket as Socket, head);
  });
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

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** An upgrade to HTTP/2 is ignored: passed on to an instance, it would let requests bypass the routing. */
const isUpgrade = ({ headers }: IncomingMessage): boolean => !/\bh2c?\b/i.test(headers.upgrade ?? '');

/** Node has read it together with one that was refused. It gets no response: the connection closes. */
const isBehindRefused = ({ closing }: ProxyContext, { socket }: IncomingMessage): boolean => closing.has(socket);

function upgrade(context: ProxyContext, request: IncomingMessage, socket: Socket, head: Buffer): void {
  socket.on('error', () => {}); // a close follows
  const response = new ServerResponse(request);
  try {
    response.assignSocket(socket);
  } catch {
    socket.destroy(); // an earlier request on this connection still waits for its response
    return;
  }
  if (head.length > 0) socket.unshift(head);
  response.shouldKeepAlive = false;
  // A response means that the instance did not switch protocols: what else the client sends is dropped.
  response.once('finish', () => {
    socket.end();
    socket.resume().setTimeout(lingerMs, () => socket.destroy());
  });
  serveRequest(context, request, response, false, request.headers.upgrade!);
}

/** Responds to bytes that are no request, or arrived too slowly. */
function refuse({ ids }: ProxyContext, error: Error, socket: Duplex & { _httpMessage?: ServerResponse | null }): void {
  // Once a response has begun, an error response would be read as a part of it.
  const code = codeOf(error);
  if (!socket.writable || socket._httpMessage?.headersSent || code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const response =
    code === 'HPE_HEADER_OVERFLOW'
      ? errorResponses.headTooLarge
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? errorResponses.tooSlow
        : errorResponses.badRequest;
  sendRawErrorResponse(socket, response, ids('req'));
}

const challengeFolder = '/.well-known/acme-challenge/';
const token = /^[A-Za-z0-9_-]{1,200}$/;

/** Cheap, because it is called for every request. */
const isChallenge = ({ method, url, socket }: IncomingMessage): boolean =>
  url!.startsWith(challengeFolder) &&
  (method === 'GET' || method === 'HEAD') &&
  !('encrypted' in socket) &&
  token.test(url!.slice(challengeFolder.length));

/**
 * http-01 (RFC 8555, 8.3): a certificate authority fetches a file over plain HTTP, to see that the host name leads
 * here. Challenges are answered for any host, before routing; requests that match no challenge are routed as usual.
 * False where there is no such challenge: then nothing was sent.
 */
async function answerChallenge(
  certificates: Certificates,
  log: Log,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> {
  const hostName = hostNameOf(request.headers.host ?? '');
  if (hostName === '') return false;
  let text: string | null = null;
  try {
    text = await certificates.answerChallenge(hostName, request.url!.slice(challengeFolder.length));
  } catch (error) {
    log.warn({ err: error, hostName }, 'a challenge could not be looked up');
  }
  if (text === null) return false;
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
  });
  response.end(text);
  return true;
}
