// Which failed requests are retried, when, and the wait until then. A request that might be carried out twice is not
// retried.
import { SluiceError } from './error.ts';
import type { Method } from './request.ts';

export interface Attempted {
  method: Method;
  idempotencyKey: string | undefined;
  ifMatch: string | undefined;
}

const baseMs = 250;
const ceilingMs = 8000;

/** Statuses of the service, or of a proxy in front of it, that may go away soon. */
const transientStatuses = new Set([408, 429, 500, 502, 503, 504]);

/** No connection was made, so the request cannot have been carried out. */
const unsentCodes = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

function wasNeverSent(error: SluiceError): boolean {
  const inner = (error.cause as { cause?: { code?: unknown } } | undefined)?.cause;
  return error.code === 'network' && typeof inner?.code === 'string' && unsentCodes.has(inner.code);
}

/** The request was certainly not carried out. */
const wasRefused = (error: SluiceError): boolean =>
  error.status === 429 || error.status === 503 || error.code === 'idempotency_in_flight' || wasNeverSent(error);

/** Whether the request may have been carried out although no success was reported. */
export const isUncertain = (error: SluiceError): boolean =>
  (error.code === 'network' || error.code === 'timeout' || error.status >= 500) && !wasRefused(error);

/** A GET is always safe to repeat, and so is a request with a key or a version; others only if they were not carried out. */
export function mayRetry(attempted: Attempted, error: SluiceError): boolean {
  if (error.code === 'aborted') return false;
  if (wasRefused(error)) return true;
  const repeatable =
    attempted.method === 'GET' || attempted.idempotencyKey !== undefined || attempted.ifMatch !== undefined;
  return repeatable && (error.code === 'network' || error.code === 'timeout' || transientStatuses.has(error.status));
}

/** The service's Retry-After, else exponential backoff; random, so that clients do not all come back at once. */
export function delayMs(attempt: number, retryAfterS: number | null, random: number): number {
  if (retryAfterS !== null) return retryAfterS * 1000 + random * baseMs;
  return random * Math.min(ceilingMs, baseMs * 2 ** attempt);
}

/** Waits; rejects as soon as the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(new SluiceError({ code: 'aborted', message: 'aborted while waiting', cause: signal?.reason }));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}
