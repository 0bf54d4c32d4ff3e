import type { ErrorCode, ErrorDetail } from '../contract/errors.ts';

/** Failures without an answer of the API: no connection, a timeout, an abort, or a response that is not from Sluice. */
type LocalCode = 'network' | 'timeout' | 'aborted' | 'unexpected_answer';

/** Later versions of the service may send codes that are not listed here. */
export type SluiceErrorCode = ErrorCode | LocalCode | (string & {});

interface SluiceErrorFields {
  code: SluiceErrorCode;
  message: string;
  status?: number;
  requestId?: string | null;
  details?: ErrorDetail[];
  docs?: string | null;
  retryAfterS?: number | null;
  cause?: unknown;
}

/** Every failed call of the client rejects with this error. */
export class SluiceError extends Error {
  readonly code: SluiceErrorCode;
  /** HTTP status of the response; 0 if there was none. */
  readonly status: number;
  /** Identifies the request in the service's log. */
  readonly requestId: string | null;
  readonly details: ErrorDetail[];
  /** Address of a page that explains the code and what to do about it. */
  readonly docs: string | null;
  readonly retryAfterS: number | null;

  constructor(fields: SluiceErrorFields) {
    super(fields.message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.name = 'SluiceError';
    this.code = fields.code;
    this.status = fields.status ?? 0;
    this.requestId = fields.requestId ?? null;
    this.details = fields.details ?? [];
    this.docs = fields.docs ?? null;
    this.retryAfterS = fields.retryAfterS ?? null;
  }
}

const keptCharacters = 200;

/** The header holds seconds or a date; returns seconds from now. */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null) return null;
  if (/^\d+$/.test(header.trim())) return Number(header);
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - nowMs) / 1000));
}

interface Envelope {
  error: { code: string; message: string; request_id?: string; docs?: string; details?: ErrorDetail[] };
}

function readEnvelope(text: string): Envelope['error'] | null {
  try {
    const { error } = JSON.parse(text) as Envelope;
    return typeof error.code === 'string' && typeof error.message === 'string' ? error : null;
  } catch {
    return null;
  }
}

export function unexpectedAnswer(what: string, response: Response, text: string, cause?: unknown): SluiceError {
  const type = response.headers.get('content-type') ?? 'no content type';
  const begin = text.trim().slice(0, keptCharacters);
  const shown = begin === '' ? 'an empty body' : JSON.stringify(begin);
  return new SluiceError({
    code: 'unexpected_answer',
    message: `${what}: this is no answer of Sluice (${response.status}, ${type}): ${shown}. Is the address right?`,
    status: response.status,
    requestId: response.headers.get('x-request-id'),
    retryAfterS: readRetryAfter(response.headers.get('retry-after'), Date.now()),
    cause,
  });
}

/** The error for a response whose status is not 2xx. */
export function errorOfAnswer(what: string, response: Response, text: string): SluiceError {
  const error = readEnvelope(text);
  if (error === null) return unexpectedAnswer(what, response, text);
  return new SluiceError({
    code: error.code,
    message: error.message,
    status: response.status,
    requestId: response.headers.get('x-request-id') ?? error.request_id ?? null,
    details: error.details ?? [],
    docs: error.docs ?? null,
    retryAfterS: readRetryAfter(response.headers.get('retry-after'), Date.now()),
  });
}

/** The message of fetch itself is only "fetch failed"; the reason is in its cause. */
export function networkError(what: string, cause: unknown): SluiceError {
  const inner = (cause as { cause?: { message?: string; code?: string } } | null)?.cause;
  const reason = inner?.message || inner?.code || (cause instanceof Error ? cause.message : String(cause));
  return new SluiceError({ code: 'network', message: `${what}: no answer from the service: ${reason}`, cause });
}
