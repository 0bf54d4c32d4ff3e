// Everything that is said of a request before an instance sees it. What two readers could understand in two ways is
// refused here, beyond what the parser refuses already (both lengths, two lengths, folded lines, bad chunks, bare line
// feeds).
import { type OwnAnswer, own } from './error-responses.ts';
import { type InboundHead, readHead } from './forwarding-headers.ts';
import type { ProxyLimits } from './limits.ts';
import { hostNameOf, pathOf } from './request-target.ts';
import type { VisitorRequest } from './visitor.ts';

export interface Inbound extends InboundHead {
  /** For the routing table. */
  hostName: string;
  path: string;
}

/** The request, or what is answered instead. */
export function readRequest(request: VisitorRequest, limits: ProxyLimits, upgrades: boolean): Inbound | OwnAnswer {
  const { method, url, rawHeaders, httpVersion } = request;
  if (rawHeaders.length > limits.headerCount * 2) return own.headTooLarge;
  if (method === 'TRACE' || method === 'CONNECT') return own.badMethod;
  const head = readHead(rawHeaders) as Inbound;
  if (head.hosts !== 1) return own.badRequest;
  if (head.strangeEncoding) return own.badEncoding;
  if (head.chunked && httpVersion === '1.0') return own.badRequest;
  if (head.hasBody && upgrades) return own.badRequest;
  const path = pathOf(url!, head.host);
  head.hostName = hostNameOf(head.host);
  if (head.hostName === '' || path === null) return own.badRequest;
  head.path = path;
  return head;
}
