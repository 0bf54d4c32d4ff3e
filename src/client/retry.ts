// Which failures may be tried again, and when. Nothing is sent twice that could be done twice.
import type { SluiceError } from './error.ts';
import type { Method } from './request.ts';

export interface Attempted {
  method: Method;
  idempotencyKey: string | undefined;
  ifMatch: string | undefined;
}

const baseMs = 250;
const ceilingMs = 8000;

/** The service, or something in front of it, may answer otherwise in a moment. */
const passing = new Set([408, 429, 500, 502, 503, 504]);

/** Nobody was there: the request cannot have been carried out. */
const unsentCodes = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

function wasNeverSent(error: SluiceError): boolean {
  const inner = (error.cause as { cause?: { code?: unknown } } | undefined)?.cause;
  return error.code === 'network' && typeof inner?.code === 'string' && unsentCodes.has(inner.code);
}

/** It surely did nothing. */
const wasRefused = (error: SluiceError): boolean =>
  error.status === 429 || error.status === 503 || error.code === 'idempotency_in_flight' || wasNeverSent(error);

/** Whether what was asked may have been done although the answer says nothing of it. */
export const isUncertain = (error: SluiceError): boolean =>
  (error.code === 'network' || error.code === 'timeout' || error.status >= 500) && !wasRefused(error);

/** A GET changes nothing, a key or a version keeps a change from being made twice; else only what did nothing. */
export function mayRetry(attempted: Attempted, error: SluiceError): boolean {
  if (error.code === 'aborted') return false;
  if (wasRefused(error)) return true;
  const repeatable =
    attempted.method === 'GET' || attempted.idempotencyKey !== undefined || attempted.ifMatch !== undefined;
  return repeatable && (error.code === 'network' || error.code === 'timeout' || passing.has(error.status));
}

/** What the service says; otherwise at random up to twice as long each time, so that many clients do not come at once. */
export function delayMs(attempt: number, retryAfterS: number | null, random: number): number {
  if (retryAfterS !== null) return retryAfterS * 1000 + random * baseMs;
  return random * Math.min(ceilingMs, baseMs * 2 ** attempt);
}
