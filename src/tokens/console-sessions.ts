// How the console signs in. /v1 takes a token in the header only, so a browser has to have one; but a token that scripts
// can read from storage is a token that can be stolen. So the console signs in once and gets a cookie that no script can
// read and that is sent to `/console/session` alone. There it gets short-lived tokens, which it keeps in memory.
//
// A short-lived token names its session and when it ends, under a MAC: none is stored. The gate looks its session up on
// each request, so that it ends with its session, and the session with the token that signed in.
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../contract/errors.ts';
import { whoAmI } from '../contract/tokens.ts';
import type { Db } from '../db/database.ts';
import type { FoundToken, Gate } from '../http/api/gate.ts';
import { unauthorized } from '../http/api/gate.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { isoTime } from '../lib/iso-time.ts';
import type { Seal } from '../lib/seal.ts';
import { hashOfSecret } from './create-token.ts';
import * as queries from './session-queries.ts';
import { findTokenByHash } from './token-queries.ts';

const cookieName = 'sluice_session';
const path = '/console/session';
const accessMs = 10 * 60_000;
const dayMs = 86_400_000;
/** A session ends when it was not used for so long, and at the latest so long after it began. */
const idleMs = 7 * dayMs;
const longestMs = 30 * dayMs;

interface SessionParts {
  db: Db;
  seal: Seal;
  ids: IdSource;
  clock: Clock;
  gate: Gate;
  apiUrl(): string;
}

// Short-lived tokens: `sls_<session>.<end in base 36>.<MAC>`.

const accessPattern = /^sls_(ses_[0-9a-z]{26})\.([0-9a-z]{1,11})\.([A-Za-z0-9_-]{43})$/;
const macOf = (seal: Seal, signed: string): Buffer => seal.mac(`console access\n${signed}`);

function issueAccess(seal: Seal, sessionId: string, endMs: number): string {
  const signed = `${sessionId}.${endMs.toString(36)}`;
  return `sls_${signed}.${macOf(seal, signed).toString('base64url')}`;
}

/** The token that a request's credential stands for, be it a token itself or a short-lived one of a session. */
export function findTokenOf({ db, seal, clock }: Pick<SessionParts, 'db' | 'seal' | 'clock'>) {
  // A client sends the same token with every request, so the hash of the last one is kept for as long as its connection is
  // open. Whether it is still valid is asked of the database each time.
  const lastOf = new WeakMap<object, { secret: Buffer; hash: string }>();

  function hashOn(connection: object, text: string): string {
    const secret = Buffer.from(text);
    const last = lastOf.get(connection);
    // A proxy sends the requests of several clients over one connection.
    if (last?.secret.length === secret.length && timingSafeEqual(last.secret, secret)) return last.hash;
    const hash = hashOfSecret(text);
    lastOf.set(connection, { secret, hash });
    return hash;
  }

  async function findBySession([, sessionId, end, mac]: string[]): Promise<FoundToken | undefined> {
    const expected = macOf(seal, `${sessionId}.${end}`);
    if (!timingSafeEqual(Buffer.from(mac!, 'base64url'), expected)) return undefined;
    const nowMs = clock.now();
    const endMs = Number.parseInt(end!, 36);
    if (endMs <= nowMs) throw unauthorized('token_expired', 'The short-lived token has expired.');
    const hash = await queries.findTokenHashOf(db, sessionId!, nowMs);
    if (hash === undefined) throw unauthorized('token_revoked', 'The session has ended.');
    const token = await findTokenByHash(db, hash);
    return token && { ...token, sessionId: sessionId! };
  }

  return (secret: string, connection: object): Promise<FoundToken | undefined> => {
    const access = accessPattern.exec(secret);
    return access ? findBySession(access) : findTokenByHash(db, hashOn(connection, secret));
  };
}

export function mountSessions(server: FastifyInstance, parts: SessionParts): void {
  const { db, gate, clock } = parts;

  server.post(path, async (request, reply) => {
    refuseOtherOrigins(request, parts);
    const caller = (await gate.admit(request, reply, whoAmI))!;
    if (caller.sessionId !== undefined)
      throw unauthorized('token_invalid', 'Sign in with a token, not with a session.');
    const nowMs = clock.now();
    const secret = randomBytes(32).toString('base64url');
    const row: queries.SessionRow = {
      id: parts.ids('ses'),
      account_id: caller.accountId,
      token_id: caller.tokenId,
      cookie_hash: hashOfSecret(secret),
      address: request.ip,
      user_agent: request.headers['user-agent']?.slice(0, 300).toWellFormed() ?? null,
      created_at: nowMs,
      last_used_at: nowMs,
      expires_at: nowMs + idleMs,
      ended_at: null,
    };
    await db.transaction().execute((tx) => queries.insertSession(tx, row));
    return sendAccess(reply, request, parts, row, secret);
  });

  server.post(`${path}/token`, async (request, reply) => {
    refuseOtherOrigins(request, parts);
    const secret = cookieOf(request);
    // Every page asks when it is loaded: that nobody is signed in is no error.
    if (secret === null) return reply.code(204).header('cache-control', 'no-store').send();
    const nowMs = clock.now();
    const row = await queries.findSessionByCookie(db, hashOfSecret(secret), nowMs);
    if (!row) {
      await gate.chargeAddress(request, reply);
      reply.header('set-cookie', cookieText(request, '', 0));
      throw unauthorized('token_missing', 'The session has ended.');
    }
    const expiresAt = Math.min(nowMs + idleMs, row.created_at + longestMs);
    await db.transaction().execute((tx) => queries.markSessionUsed(tx, row.id, nowMs, expiresAt));
    return sendAccess(reply, request, parts, { ...row, expires_at: expiresAt }, secret);
  });

  server.delete(path, async (request, reply) => {
    refuseOtherOrigins(request, parts);
    const secret = cookieOf(request);
    const row = secret === null ? undefined : await queries.findSessionByCookie(db, hashOfSecret(secret), clock.now());
    if (row) await db.transaction().execute((tx) => queries.endSession(tx, row.id, clock.now()));
    return reply
      .code(204)
      .header('cache-control', 'no-store')
      .header('set-cookie', cookieText(request, '', 0))
      .send();
  });
}

function sendAccess(
  reply: FastifyReply,
  request: FastifyRequest,
  { seal, clock }: SessionParts,
  row: queries.SessionRow,
  secret: string,
): FastifyReply {
  const nowMs = clock.now();
  const endMs = Math.min(nowMs + accessMs, row.expires_at);
  return reply
    .header('cache-control', 'no-store')
    .header('set-cookie', cookieText(request, secret, Math.floor((row.expires_at - nowMs) / 1000)))
    .type('application/json; charset=utf-8')
    .send(JSON.stringify({ token: issueAccess(seal, row.id, endMs), expires_at: isoTime(endMs) }));
}

/** What a browser sends with every POST and DELETE. Pages of other origins are refused. */
function refuseOtherOrigins({ headers }: FastifyRequest, { apiUrl }: SessionParts): void {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  const isOwn =
    origin !== undefined &&
    URL.canParse(origin) &&
    (new URL(origin).host === host || new URL(origin).origin === new URL(apiUrl()).origin);
  if (isOwn && (site === undefined || site === 'same-origin')) return;
  throw new ApiError('insufficient_scope', 'Only pages of this service may use its sessions.', {
    details: [{ path: 'header.origin', message: 'must be the address of this service' }],
  });
}

function cookieOf({ headers: { cookie = '' } }: FastifyRequest): string | null {
  return /(?:^|;\s*)sluice_session=([A-Za-z0-9_-]{43})(?:;|$)/.exec(cookie)?.[1] ?? null;
}

function cookieText({ headers }: FastifyRequest, secret: string, maxAgeS: number): string {
  const secure = headers.origin?.startsWith('https:') ? '; Secure' : '';
  return `${cookieName}=${secret}; Path=${path}; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict${secure}`;
}
