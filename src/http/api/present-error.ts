// Turns anything that was thrown into the error envelope. The client gets a code and a message; the cause goes to the log.
import { ApiError, type ErrorCode, type ErrorDetail, errorCatalogue } from '../../contract/errors.ts';
import { isUnavailable } from '../../db/database-errors.ts';

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
