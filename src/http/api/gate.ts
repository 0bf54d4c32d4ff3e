// The gate that every API request passes before its body is read. It checks, in this order: no credential in the query
// string, a valid token, the rate limit, the scope. Every response carries the state of the rate limit.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RouteDeclaration } from '../../contract/declare.ts';
import { ApiError } from '../../contract/errors.ts';
import { allows, type Caller } from '../../contract/scopes.ts';
import { networkOf } from '../../lib/address.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Charge, RateCells } from './rate-cells.ts';
import { type RateState, retryAfterS, stateOf } from './rate-limit.ts';

export const tokenLimit = 600;
/**
 * All tokens of an account together, in multiples of the limit of one, where its quota says nothing else. The headers say what
 * is left of the token's.
 */
export const accountFactor = 10;
const addressLimit = 60;

/** Under which the requests of all tokens of an account are counted. */
export const accountKey = (accountId: string): string => `account ${accountId}`;

/** Finds the token that a secret stands for, even if it is revoked or expired. `connection`: the one it came on. */
type FindToken = (secret: string, connection: object) => Promise<FoundToken | undefined>;

export interface FoundToken extends Caller {
  expiresAt: number | null;
  revokedAt: number | null;
}

export interface Gate {
  admit(request: FastifyRequest, reply: FastifyReply, declaration: RouteDeclaration | null): Promise<Caller | null>;
  /** Counts a request without a valid credential. */
  chargeAddress(request: FastifyRequest, reply: FastifyReply): Promise<void>;
}

const credentialNames =
  /(?:^|&)(?:token|access_token|api_?key|key|auth|authorization|bearer|secret)(?:\[[^=&]*)?(?:=|&|$)/i;

/** Also recognises percent-encoded names. */
function hasCredential(url: string): boolean {
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
  onUse: (tokenId: string) => void,
  accountLimitOf: (accountId: string) => number | null,
  limit = tokenLimit,
): Gate {
  /** The headers say what is left of its own limit. `account`: what all tokens of an account may send together. */
  async function charge(reply: FastifyReply, own: Charge, account: Charge | null): Promise<void> {
    const nowMs = clock.now();
    const charges = account === null ? [own] : [own, account];
    const taken = await cells.take(charges, nowMs);
    setRateHeaders(reply, stateOf(own.limit, taken[0]!, nowMs), nowMs);
    const refused = taken.findIndex(({ admitted }) => !admitted);
    if (refused === -1) return;
    const { limit } = charges[refused]!;
    const waitS = retryAfterS(limit, taken[refused]!, nowMs);
    const message =
      refused === 0
        ? `Too many requests: ${limit} a minute.`
        : `Too many requests of this account: ${limit} a minute over all its tokens.`;
    throw new ApiError('rate_limited', `${message} Try again in ${waitS} s.`, {
      headers: { 'Retry-After': String(waitS) },
    });
  }

  const chargeAddress = (request: FastifyRequest, reply: FastifyReply) =>
    charge(reply, { key: `ip ${networkOf(request.ip)}`, limit: addressLimit }, null);

  return {
    chargeAddress,
    async admit(request, reply, declaration) {
      if (hasCredential(request.raw.url!)) {
        await chargeAddress(request, reply);
        throw new ApiError('token_in_query', 'The query string contains a credential. Use the Authorization header.');
      }
      const token = await identify(findToken, request, clock);
      if (token instanceof ApiError) {
        await chargeAddress(request, reply);
        if (declaration === null || declaration.scope === 'public') return null;
        throw token;
      }
      const accountLimit = accountLimitOf(token.accountId);
      await charge(
        reply,
        { key: token.sessionId ?? token.tokenId, limit },
        accountLimit === null ? null : { key: accountKey(token.accountId), limit: accountLimit },
      );
      onUse(token.tokenId);
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

function setRateHeaders(reply: FastifyReply, { limit, remaining, resetAtS }: RateState, nowMs: number): void {
  const resetInS = Math.max(0, Math.ceil(resetAtS - nowMs / 1000));
  reply.header('x-ratelimit-limit', limit);
  reply.header('x-ratelimit-remaining', remaining);
  reply.header('x-ratelimit-reset', resetAtS);
  reply.header('ratelimit-policy', `"default";q=${limit};w=60`);
  reply.header('ratelimit', `"default";r=${remaining};t=${resetInS}`);
}

/** A short-lived token says by itself why it is refused. */
function asRefusal(error: unknown): ApiError {
  if (error instanceof ApiError && error.status === 401) return error;
  throw error;
}

async function identify(
  findToken: FindToken,
  { headers: { authorization: header }, raw }: FastifyRequest,
  clock: Clock,
): Promise<FoundToken | ApiError> {
  if (header === undefined) return unauthorized('token_missing', 'Send the token as Authorization: Bearer <token>.');
  const secret = /^Bearer +([!-~]{1,200})$/i.exec(header)?.[1];
  const token = secret === undefined ? undefined : await findToken(secret, raw.socket).catch(asRefusal);
  if (token instanceof ApiError) return token;
  if (!token) return unauthorized('token_invalid', 'Invalid token.');
  if (token.revokedAt !== null) return unauthorized('token_revoked', 'The token was revoked.');
  if (token.expiresAt !== null && token.expiresAt <= clock.now()) {
    return unauthorized('token_expired', 'The token has expired.');
  }
  return token;
}

export function unauthorized(
  code: 'token_missing' | 'token_invalid' | 'token_revoked' | 'token_expired',
  message: string,
) {
  const challenge =
    code === 'token_missing' ? 'Bearer' : `Bearer error="invalid_token", error_description="${message}"`;
  return new ApiError(code, message, { headers: { 'WWW-Authenticate': challenge } });
}
