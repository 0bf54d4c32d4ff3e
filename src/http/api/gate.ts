// The gate that every API request passes before its body is read. It checks, in this order: no credential in the query
// string, a valid token, the rate limit, the scope. Every response carries the state of the rate limit.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RouteDeclaration } from '../../contract/declare.ts';
import { ApiError } from '../../contract/errors.ts';
import { allows, type Caller } from '../../contract/scopes.ts';
import { networkOf } from '../../lib/address.ts';
import type { Clock } from '../../lib/clock.ts';
import type { RateCells } from './rate-cells.ts';
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

/** Finds the token that a secret stands for, even if it is revoked or expired. */
type FindToken = (secret: string) => Promise<FoundToken | undefined>;

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
  async function charge(reply: FastifyReply, key: string, limit: number): Promise<void> {
    const nowMs = clock.now();
    const taken = await cells.take(key, limit, nowMs);
    setRateHeaders(reply, stateOf(limit, taken, nowMs), nowMs);
    if (taken.admitted) return;
    const waitS = retryAfterS(limit, taken, nowMs);
    throw new ApiError('rate_limited', `Too many requests: ${limit} a minute. Try again in ${waitS} s.`, {
      headers: { 'Retry-After': String(waitS) },
    });
  }

  const chargeNetwork = (request: FastifyRequest, reply: FastifyReply) =>
    charge(reply, `ip ${networkOf(request.ip)}`, addressLimit);

  async function chargeAccount(accountId: string): Promise<void> {
    const nowMs = clock.now();
    const accountLimit = accountLimitOf(accountId);
    if (accountLimit === null) return;
    const taken = await cells.take(accountKey(accountId), accountLimit, nowMs);
    if (taken.admitted) return;
    const waitS = retryAfterS(accountLimit, taken, nowMs);
    const message = `Too many requests of this account: ${accountLimit} a minute over all its tokens. Try again in ${waitS} s.`;
    throw new ApiError('rate_limited', message, { headers: { 'Retry-After': String(waitS) } });
  }

  return {
    chargeAddress: chargeNetwork,
    async admit(request, reply, declaration) {
      // Not before it is needed: parsing an address costs as much as all the rest here.
      const chargeAddress = () => chargeNetwork(request, reply);
      if (hasCredential(request.raw.url!)) {
        await chargeAddress();
        throw new ApiError('token_in_query', 'The query string contains a credential. Use the Authorization header.');
      }
      const token = await identify(findToken, request.headers.authorization, clock);
      if (token instanceof ApiError) {
        await chargeAddress();
        if (declaration === null || declaration.scope === 'public') return null;
        throw token;
      }
      const account = Promise.allSettled([chargeAccount(token.accountId)]);
      await charge(reply, token.sessionId ?? token.tokenId, limit);
      const [charged] = await account;
      if (charged.status === 'rejected') throw charged.reason;
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
  header: string | undefined,
  clock: Clock,
): Promise<FoundToken | ApiError> {
  if (header === undefined) return unauthorized('token_missing', 'Send the token as Authorization: Bearer <token>.');
  const secret = /^Bearer +([!-~]{1,200})$/i.exec(header)?.[1];
  const token = secret === undefined ? undefined : await findToken(secret).catch(asRefusal);
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
