// Reads a request's head: which host it is for, which path, and whether it is accepted at all. A request that two
// readers could understand differently is refused here; the HTTP parser has already refused others (a length and chunks,
// two lengths, folded lines, bad chunks, bare line feeds). No I/O.
import { type ErrorResponse, errorResponses } from './error-responses.ts';
import { type RequestHead, readHead } from './headers.ts';
import type { ProxyLimits } from './limits.ts';
import type { VisitorRequest } from './visitor-messages.ts';

/** The head of the request, or the response that refuses it. */
export function readRequest(
  request: VisitorRequest,
  limits: ProxyLimits,
  isUpgrade: boolean,
): RequestHead | ErrorResponse {
  const { method, url, rawHeaders, httpVersion } = request;
  if (rawHeaders.length > limits.headerCount * 2) return errorResponses.headTooLarge;
  if (method === 'TRACE' || method === 'CONNECT') return errorResponses.badMethod;
  const head = readHead(rawHeaders);
  if (head.hostCount !== 1) return errorResponses.badRequest;
  if (head.unsupportedEncoding) return errorResponses.badEncoding;
  if (head.chunked && httpVersion === '1.0') return errorResponses.badRequest;
  if (head.hasBody && isUpgrade) return errorResponses.badRequest;
  const path = pathOf(url!, head.host);
  head.hostName = hostNameOf(head.host);
  if (head.hostName === '' || path === null) return errorResponses.badRequest;
  head.path = path;
  return head;
}

const port = /^\d{1,5}$/;
const hostName = /^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])$/;

/** The host name of a Host header, lower case, without port and final dot; '' where the header has none. */
export function hostNameOf(header: string): string {
  const from = header.startsWith('[') ? header.indexOf(']') : 0;
  if (from === -1) return '';
  const colon = header.indexOf(':', from);
  if (colon !== -1 && !port.test(header.slice(colon + 1))) return '';
  const name = (colon === -1 ? header : header.slice(0, colon)).toLowerCase();
  if (!hostName.test(name)) return '';
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

const absolute = /^https?:\/\/([^/?#]*)(.*)$/i;

/**
 * The path with its query; null where the target is malformed. A target that names a host must name that of the Host
 * header: otherwise two readers of the request could take it for different hosts.
 */
export function pathOf(target: string, host: string): string | null {
  if (target.charCodeAt(0) === 47 /* / */) return target;
  const parts = absolute.exec(target);
  if (!parts || parts[1]!.toLowerCase() !== host.toLowerCase()) return null;
  const rest = parts[2]!;
  return rest.startsWith('/') ? rest : `/${rest}`;
}
