// Takes a request whose head has arrived, and either refuses it, answers a health check, or starts an exchange with an
// instance.
import { addForwardedHeaders, type Client, clientBehindProxy, clientOf } from './client-address.ts';
import { type ErrorResponse, errorResponses, redirectToHttps, refuseRequest } from './error-responses.ts';
import { Exchange, type ProxyContext } from './exchange.ts';
import type { RequestHead } from './headers.ts';
import { answerProbe, isProbe } from './probe.ts';
import { readRequest } from './read-request.ts';
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
