// How a request fails. Anything that was thrown becomes the error envelope: the client gets a code and a message, the cause
// goes to the log. If there is no request to reply to, the envelope is written to the socket.
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, type ErrorCode, type ErrorDetail, errorCatalogue } from '../contract/errors.ts';
import { isUnavailable } from '../db/database-errors.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';

interface FailureParts {
  ids: IdSource;
  log: Log;
  apiUrl(): string;
}

const lingerMs = 1000;

export function fail(parts: FailureParts, thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = toApiError(thrown);
  if (error.status >= 500 && error.code !== 'shutting_down') {
    parts.log.error({ request_id: request.id, err: error.cause ?? thrown }, error.message);
  }
  // The rest of a refused body is not read, so the connection is closed after the response.
  if (error.status === 413 || error.status === 415) {
    reply.header('connection', 'close');
    lingerBeforeClose(request.raw.socket);
  }
  reply.header('x-request-id', request.id);
  reply.header('cache-control', 'no-store');
  for (const name in error.headers) reply.header(name, error.headers[name]);
  return reply
    .code(error.status)
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(envelope(error, request.id, parts.apiUrl())));
}

/**
 * Closing a connection on which data is still arriving resets it, and the reset can discard the response before the client
 * has read it. So we end our side, stop reading, and give the client a moment.
 */
function lingerBeforeClose(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end();
    setImmediate(() => socket.pause());
    const timer = setTimeout(() => socket.destroy(), lingerMs);
    socket.once('close', () => clearTimeout(timer));
  };
}

/** For bytes that are not HTTP, or a request that did not arrive in time: there is no reply object, only the socket. */
export function failConnection(parts: FailureParts, cause: Error & { code?: string }, socket: Socket): void {
  if (cause.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const isLate = cause.code === 'ERR_HTTP_REQUEST_TIMEOUT';
  const error = isLate
    ? new ApiError('request_timeout', 'The request did not arrive completely in time.')
    : new ApiError('invalid_request', 'This is not a well-formed HTTP request.');
  const requestId = parts.ids('req');
  const body = JSON.stringify(envelope(error, requestId, parts.apiUrl()));
  socket.end(
    `HTTP/1.1 ${error.status} ${isLate ? 'Request Timeout' : 'Bad Request'}\r\n` +
      `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `X-Request-Id: ${requestId}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  );
  parts.log.info({ request_id: requestId, status: error.status, address: socket.remoteAddress }, 'malformed request');
}

interface ErrorEnvelope {
  error: {
    code: ErrorCode;
    message: string;
    status: number;
    request_id: string;
    docs: string;
    details?: ErrorDetail[];
  };
}

export function envelope(error: ApiError, requestId: string, apiUrl: string): ErrorEnvelope {
  return {
    error: {
      code: error.code,
      message: error.message,
      status: errorCatalogue[error.code].status,
      request_id: requestId,
      docs: `${apiUrl}/docs/errors#${error.code}`,
      ...(error.details && { details: error.details }),
    },
  };
}

const fastifyErrors: Record<string, () => ApiError> = {
  FST_ERR_CTP_BODY_TOO_LARGE: () => new ApiError('body_too_large', 'The body is larger than 1 MiB.'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () =>
    new ApiError('unsupported_media_type', 'A body needs Content-Type: application/json.'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () =>
    new ApiError('invalid_request', 'The length of the body does not match Content-Length.'),
  FST_ERR_BAD_URL: () => new ApiError('invalid_request', 'The path is not properly percent-encoded.'),
  FST_ERR_MAX_PARAM_LENGTH: () => new ApiError('route_not_found', 'There is no such path.'),
};

export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (isUnavailable(error)) {
    return new ApiError('database_unavailable', 'The database is not available. Try again shortly.', {
      headers: { 'Retry-After': '2' },
      cause: error,
    });
  }
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown };
  if (typeof code === 'string' && Object.hasOwn(fastifyErrors, code)) return fastifyErrors[code]!();
  if (typeof code === 'string' && code.startsWith('FST_ERR_') && Number(statusCode) < 500) {
    return new ApiError('invalid_request', 'The request is malformed.', { cause: error });
  }
  return new ApiError('internal_error', 'Internal error; the log of the service has the details.', { cause: error });
}
