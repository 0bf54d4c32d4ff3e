// The errors that a route may respond with: those it declares, and those of every route of its kind.

import type { RouteDeclaration } from '../../contract/declare/route.ts';
import type { ErrorCode } from '../../contract/errors.ts';

const gateErrors: ErrorCode[] = [
  'invalid_request',
  'token_in_query',
  'rate_limited',
  'internal_error',
  'busy',
  'database_unavailable',
  'shutting_down',
];
const tokenErrors: ErrorCode[] = ['token_missing', 'token_invalid', 'token_expired', 'token_revoked'];
const bodyErrors: ErrorCode[] = ['invalid_json', 'body_too_large', 'unsupported_media_type', 'request_timeout'];
const postErrors: ErrorCode[] = ['idempotency_in_flight', 'idempotency_key_reused'];

export function errorsOf(route: RouteDeclaration): ErrorCode[] {
  const codes = new Set<ErrorCode>([...gateErrors, ...route.errors]);
  const add = (more: ErrorCode[]) => more.forEach((code) => void codes.add(code));
  if (route.scope !== 'public') add(tokenErrors);
  if (route.scope !== 'public' && route.scope !== null) add(['insufficient_scope']);
  if (route.method !== 'GET') add(bodyErrors);
  if (route.method === 'POST') add(postErrors);
  if (route.versioned && (route.method === 'PATCH' || route.method === 'DELETE')) add(['version_conflict']);
  return [...codes];
}
