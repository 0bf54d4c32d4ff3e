// The gate every request of the API passes before its body is read: no credential in the address, a valid token, room in
// the rate limit, the needed scope. In that order, and each answer says how much room is left.
import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../contract/caller.ts';
import { ApiError } from '../../contract/errors.ts';
import type { RouteDeclaration } from '../../contract/route.ts';
import { allows } from '../../contract/scopes.ts';
import type { Clock } from '../../lib/clock.ts';
import type { RateCells } from './rate-cells.ts';
import { retryAfterS, stateOf } from './rate-limit.ts';

export const tokenLimit = 600;
export const addressLimit = 60;

/** The token behind a secret, whatever its state. */
export type FindToken = (hash: string) => Promise<FoundToken | undefined>;

export interface FoundToken extends Caller {
  expiresAt: number | null;
  revokedAt: number | null;
}

export interface Gate {
  admit(request: FastifyRequest, reply: FastifyReply, declaration: RouteDeclaration | null): Promise<Caller | null>;
}

const credentialNames =
  /(?:^|&)(?:token|access_token|api_?key|key|auth|authorization|bearer|secret)(?:\[[^=&]*)?(?:=|&|$)/i;

/** Does the query string name a credential, however it is written? */
export function hasCredential(url: string): boolean {
  const start = url.indexOf('?');
  if (start === -1) return false;
  let query = url.slice(start + 1);
  if (query.includes('%')) {
    query = query
      .split('&')
      .map((pair) => decodeLeniently(pair.split('=', 1)[0]!))
      .join('&');
  }
  return credentialNames.test(query);
}

function decodeLeniently(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function createGate(
  findToken: FindToken,
  cells: RateCells,
  clock: Clock,
  used: (tokenId: string) => void,
  limit = tokenLimit,
): Gate {
  async function charge(reply: FastifyReply, key: string, limit: number): Promise<void> {
    const nowMs = clock.now();
    const taken = await cells.take(key, limit, nowMs);
    const state = stateOf(limit, taken, nowMs);
    const resetInS = Math.max(0, Math.ceil(state.resetAtS - nowMs / 1000));
    reply.header('x-ratelimit-limit', limit);
    reply.header('x-ratelimit-remaining', state.remaining);
    reply.header('x-ratelimit-reset', state.resetAtS);
    reply.header('ratelimit-policy', `"default";q=${limit};w=60`);
    reply.header('ratelimit', `"default";r=${state.remaining};t=${resetInS}`);
    if (taken.admitted) return;
    const wait = retryAfterS(limit, taken, nowMs);
    throw new ApiError('rate_limited', `Too many requests: ${limit} a minute. Try again in ${wait} s.`, {
      headers: { 'Retry-After': String(wait) },
    });
  }

  async function identify(header: string | undefined): Promise<FoundToken | ApiError> {
    if (header === undefined) return unauthorized('token_missing', 'Send the token as Authorization: Bearer <token>.');
    const secret = /^Bearer +([!-~]{1,200})$/i.exec(header)?.[1];
    const token = secret === undefined ? undefined : await findToken(hash('sha256', secret));
    if (!token) return unauthorized('token_invalid', 'The token is not one of this service.');
    if (token.revokedAt !== null) return unauthorized('token_revoked', 'The token was revoked.');
    if (token.expiresAt !== null && token.expiresAt <= clock.now()) {
      return unauthorized('token_expired', 'The token has expired.');
    }
    return token;
  }

  return {
    async admit(request, reply, declaration) {
      const address = `ip ${request.ip}`;
      if (hasCredential(request.raw.url!)) {
        await charge(reply, address, addressLimit);
        throw new ApiError(
          'token_in_query',
          'A credential in the query string is refused. Use the Authorization header.',
        );
      }
      const token = await identify(request.headers.authorization);
      if (token instanceof ApiError) {
        await charge(reply, address, addressLimit);
        if (declaration === null || declaration.scope === 'public') return null;
        throw token;
      }
      await charge(reply, token.tokenId, limit);
      used(token.tokenId);
      const scope = declaration?.scope;
      if (scope && scope !== 'public' && !allows(token.scopes, scope)) {
        throw new ApiError('insufficient_scope', `The token lacks the scope ${scope}.`, {
          details: [{ path: 'scope', message: scope }],
        });
      }
      return token;
    },
  };
}

function unauthorized(code: 'token_missing' | 'token_invalid' | 'token_revoked' | 'token_expired', message: string) {
  const challenge =
    code === 'token_missing' ? 'Bearer' : `Bearer error="invalid_token", error_description="${message}"`;
  return new ApiError(code, message, { headers: { 'WWW-Authenticate': challenge } });
}
