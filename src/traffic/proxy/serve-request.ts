// Takes a request whose head has arrived, and either refuses it, answers a health check, or starts an exchange with an
// instance. Who sent it is the other end of its connection or, where that is a trusted proxy, the client it forwards for. What any
// other client says about that is replaced by what this proxy saw.
import { isIPv6, type Socket } from 'node:net';
import { isAmong, parseAddress, type Range } from '../../lib/address.ts';
import { type ErrorResponse, errorResponses, redirectToHttps, refuseRequest } from './error-responses.ts';
import { Exchange, type ProxyContext } from './exchange.ts';
import { hostNameOf, type RequestHead, readRequest } from './headers.ts';
import { answerProbe, isProbe } from './probe.ts';
import type { ProxyRoute } from './route-table.ts';
import type { VisitorRequest, VisitorResponse } from './visitor-messages.ts';

export function serveRequest(
  context: ProxyContext,
  request: VisitorRequest,
  response: VisitorResponse,
  awaitsContinue = false,
  upgrade: string | null = null,
): void {
  const { limits, trustedProxies, routes } = context;
  const head = readRequest(request, limits, upgrade !== null);
  if ('status' in head) {
    refuseRequest(context, request, response, head);
    return;
  }
  const exchange = new Exchange(context, request, response, head, upgrade, awaitsContinue);
  const peer = clientOf(request.socket);
  const client = trustedProxies.length === 0 ? peer : clientBehindProxy(peer, request.rawHeaders, trustedProxies);
  const route = routes.find(head.hostName);
  if (!route && client.serverName === null && upgrade === null && isProbe(head, request.method)) {
    answerProbe(response, head.path, context.draining);
    return;
  }
  const refusal = refusalOf(context, route, client, head);
  if (!route || refusal !== null) {
    exchange.refuse(refusal ?? errorResponses.unknownHost);
    return;
  }
  addForwardedHeaders(head.headers, client, head.host);
  exchange.start(route);
}

/** With TLS, a request must be for the host of the handshake; without, it may be redirected to TLS. */
function refusalOf(
  { httpsPort }: ProxyContext,
  route: ProxyRoute | undefined,
  { serverName, proto }: Client,
  { hostName, path }: RequestHead,
): ErrorResponse | null {
  if (serverName !== null) return serverName === hostName ? null : errorResponses.misdirected;
  return route?.secure && httpsPort !== null && proto === 'http' ? redirectToHttps(hostName, httpsPort, path) : null;
}

export interface Client {
  address: string;
  /** A Forwarded header up to the host (RFC 7239). */
  forwardedPrefix: string;
  proto: string;
  port: string;
  /** The host name of its TLS handshake, lower case; null: it came without TLS. */
  serverName: string | null;
}

const clientKey = Symbol('client');

/** The other end of a connection. It is kept with the socket, because all requests of a connection share it. */
export function clientOf(
  socket: Socket & { [clientKey]?: Client; encrypted?: boolean; servername?: string | false | null },
): Client {
  const known = socket[clientKey];
  if (known) return known;
  const address = (socket.remoteAddress ?? 'unknown').replace(/^::ffff:(?=\d+\.)/, '');
  const client = describeClient({
    address,
    proto: socket.encrypted ? 'https' : 'http',
    port: String(socket.localPort),
    serverName: socket.encrypted ? hostNameOf(socket.servername || '') : null,
  });
  socket[clientKey] = client;
  return client;
}

export function describeClient(known: Omit<Client, 'forwardedPrefix'>): Client {
  const node = isIPv6(known.address) ? `"[${known.address}]"` : known.address;
  return { ...known, forwardedPrefix: `for=${node};proto=${known.proto};host="` };
}

/** The host is a known one, with a port at most, so it needs no quoting. */
export function addForwardedHeaders(
  headers: string[],
  { address, forwardedPrefix, proto, port }: Client,
  host: string,
): void {
  headers.push('X-Forwarded-For', address, 'X-Forwarded-Proto', proto, 'X-Forwarded-Host', host);
  headers.push('X-Forwarded-Port', port, 'Forwarded', `${forwardedPrefix}${host}"`);
}

/**
 * The client that a trusted proxy forwards for; a peer that is no trusted proxy is the client itself. X-Forwarded-For
 * is read from its end: only what trusted proxies appended to it can be relied on.
 */
export function clientBehindProxy(peer: Client, raw: readonly string[], trusted: readonly Range[]): Client {
  if (!isAmong(peer.address, trusted)) return peer;
  let chain = '';
  let proto = peer.proto;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    if (name === 'x-forwarded-for') chain = chain === '' ? raw[i + 1]! : `${chain},${raw[i + 1]!}`;
    else if (name === 'x-forwarded-proto' && /^https?$/.test(raw[i + 1]!)) proto = raw[i + 1]!;
  }
  const addresses = chain.split(',').map((address) => address.trim());
  const address = addresses.findLast((one) => !isAmong(one, trusted));
  const isKnown = address !== undefined && parseAddress(address) !== null;
  return describeClient({ ...peer, address: isKnown ? address : peer.address, proto });
}
