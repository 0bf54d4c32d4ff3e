// What an attempt that failed before an answer means.
import { type ErrorResponse, errorResponses } from './error-responses.ts';

export const codeOf = (error: Error): string => ('code' in error ? String(error.code) : error.name);

/** May be asked twice with the effect of once (RFC 9110, 9.2.2). */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

const lost = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'UND_ERR_CLOSED', 'UND_ERR_DESTROYED']);
const refused = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED', 'UND_ERR_ABORTED']);

/** Whether it was the instance that failed, not the request or our own closing of its connections. */
export function isOfInstance(error: Error): boolean {
  const code = codeOf(error);
  return !refused.has(code) && code !== 'UND_ERR_CLOSED' && code !== 'UND_ERR_DESTROYED';
}

/** Whether another instance may be asked, given that no byte of an answer came. */
export function isSafeToRepeat(error: Error, method: string, sent: boolean, hasBody: boolean): boolean {
  const code = codeOf(error);
  if (refused.has(code)) return false;
  if (!sent) return true;
  return lost.has(code) && !hasBody && idempotent.has(method);
}

export function errorResponseTo(error: Error): ErrorResponse {
  switch (codeOf(error)) {
    case 'UND_ERR_HEADERS_TIMEOUT':
    case 'UND_ERR_CONNECT_TIMEOUT':
      return errorResponses.timedOut;
    case 'UND_ERR_INVALID_ARG':
    case 'UND_ERR_NOT_SUPPORTED':
      return errorResponses.badRequest;
    default:
      return errorResponses.badGateway;
  }
}
