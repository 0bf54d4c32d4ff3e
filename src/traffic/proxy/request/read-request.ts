// What is checked of a request before an instance sees it. A request that two readers could understand differently is
// refused here; the HTTP parser has already refused others (a length and chunks, two lengths, folded lines, bad chunks,
// bare line feeds).
import { type ErrorResponse, errorResponses } from '../error-responses.ts';
import type { ProxyLimits } from '../limits.ts';
import type { VisitorRequest } from '../visitor-messages.ts';
import { type RequestHead, readHead } from './request-headers.ts';
import { hostNameOf, pathOf } from './request-target.ts';

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
