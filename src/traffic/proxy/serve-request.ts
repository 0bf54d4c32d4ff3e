// What becomes of a request whose head has arrived: it is refused here, or it becomes an exchange with an instance.
import { believedPeer } from './believed-peer.ts';
import type { ProxyContext } from './context.ts';
import { answer, moved, type OwnAnswer, own } from './error-responses.ts';
import { Exchange } from './exchange.ts';
import { addForwarding, type Peer, peerOf } from './forwarding-headers.ts';
import { type Inbound, readRequest } from './inbound.ts';
import type { Way } from './instances.ts';
import type { VisitorRequest, VisitorResponse } from './visitor.ts';

export function serveRequest(
  context: ProxyContext,
  request: VisitorRequest,
  response: VisitorResponse,
  awaitsContinue = false,
  upgrade: string | null = null,
): void {
  const { limits, trustedProxies, ways } = context;
  const head = readRequest(request, limits, upgrade !== null);
  if ('status' in head) {
    // Where the head was not understood, nobody knows where the request ends.
    answer(response, head, context.ids('req'), true);
    return;
  }
  const exchange = new Exchange(context, request, response, head, upgrade, awaitsContinue);
  const seen = peerOf(request.socket);
  const peer = trustedProxies.length === 0 ? seen : believedPeer(seen, request.rawHeaders, trustedProxies);
  const way = ways.find(head.hostName);
  const refusal = refusalOf(context, way, peer, head);
  if (!way || refusal !== null) {
    exchange.refuse(refusal ?? own.unknownHost);
    return;
  }
  addForwarding(head.headers, peer, head.host);
  exchange.start(way);
}

/** With TLS, a request is for the host whose certificate was shown; without, it may be redirected to TLS. */
function refusalOf(
  { httpsPort }: ProxyContext,
  way: Way | undefined,
  { serverName, proto }: Peer,
  { hostName, path }: Inbound,
): OwnAnswer | null {
  if (serverName !== null) return serverName === hostName ? null : own.misdirected;
  return way?.secure && httpsPort !== null && proto === 'http' ? moved(hostName, httpsPort, path) : null;
}
