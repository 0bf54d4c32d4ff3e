// Attempts that failed before their response began: whether the request may be repeated, what the visitor gets
// otherwise, and the line in the log.
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { type ErrorResponse, errorResponses } from './error-responses.ts';

export const codeOf = (error: Error): string => ('code' in error ? String(error.code) : error.name);

/** Repeating these has no further effect (RFC 9110, 9.2.2). */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** The instance holds the request, and its machine does not answer (silent-instances.ts). */
export const silentInstance = Object.assign(new Error('the instance does not answer'), { code: 'INSTANCE_SILENT' });

const lost = new Set([
  'UND_ERR_SOCKET',
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
  silentInstance.code,
]);
/** Nobody is there: a refusal comes from somebody. */
const silence = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH']);
const refused = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED', 'UND_ERR_ABORTED']);

/** Whether the instance failed, and not the request, or its connections because the proxy had closed them. */
export function isOfInstance(error: Error): boolean {
  const code = codeOf(error);
  return !refused.has(code) && code !== 'UND_ERR_CLOSED' && code !== 'UND_ERR_DESTROYED';
}

/** Whether a connection could not be made because the instance's machine does not answer. */
export const isSilence = (error: Error): boolean => silence.has(codeOf(error));

/** Whether the request may be sent again, given that no byte of a response has arrived. */
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

const linesPerSecond = 10;

interface FailedRequest {
  requestId: string;
  host: string;
  revision: number;
  status: number;
  /** What the last attempt failed with. */
  code: string;
  reason: string;
  tookMs: number;
}

/**
 * Logs requests that got an error response because of their instances, under the request id that the visitor was
 * shown. Only so many a second are logged: an instance that is down may fail thousands of requests.
 */
export class FailedRequests {
  readonly #clock: Clock;
  readonly #log: Log;
  #second = 0;
  #lines = 0;
  #notLogged = 0;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  note(failed: FailedRequest): void {
    const second = Math.floor(this.#clock.now() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#lines = 0;
    }
    if (this.#lines === linesPerSecond) {
      this.#notLogged++;
      return;
    }
    this.#lines++;
    const others = this.#notLogged > 0 ? { notLogged: this.#notLogged } : {};
    this.#notLogged = 0;
    this.#log.warn({ ...failed, ...others }, 'a request failed');
  }
}
