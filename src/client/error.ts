import type { ErrorCode, ErrorDetail } from '../contract/errors.ts';

/** What is not an answer of the API: no connection, too slow, called off, or somebody else answered. */
export type LocalCode = 'network' | 'timeout' | 'aborted' | 'unexpected_answer';

/** Later versions of the service may answer with more. */
export type SluiceErrorCode = ErrorCode | LocalCode | (string & {});

export interface SluiceErrorFields {
  code: SluiceErrorCode;
  message: string;
  status?: number;
  requestId?: string | null;
  details?: ErrorDetail[];
  docs?: string | null;
  retryAfterS?: number | null;
  cause?: unknown;
}

/** The one error that every call of the client fails with. */
export class SluiceError extends Error {
  readonly code: SluiceErrorCode;
  /** Of the answer; 0: there was none. */
  readonly status: number;
  /** The service's log knows the request by it. */
  readonly requestId: string | null;
  readonly details: ErrorDetail[];
  /** A page that says what the code means and what to do. */
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

/** Seconds from now; a date is allowed too. */
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

/** What an answer that is not 2xx means. */
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

/** fetch says "fetch failed"; what people need is below it. */
export function networkError(what: string, cause: unknown): SluiceError {
  const inner = (cause as { cause?: { message?: string; code?: string } } | null)?.cause;
  const reason = inner?.message || inner?.code || (cause instanceof Error ? cause.message : String(cause));
  return new SluiceError({ code: 'network', message: `${what}: no answer from the service: ${reason}`, cause });
}
