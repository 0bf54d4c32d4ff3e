// The account at an ACME certificate authority, and requests to it. All processes share the account; its key is sealed
// in the database. Unlike acme-client's own transport, ours reports the authority's error and Retry-After, instead of
// hiding the former and sleeping through the latter.
import { generateKeyPairSync } from 'node:crypto';
import { getCACertificates } from 'node:tls';
import type { Client } from 'acme-client';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { readRetryAfter } from '../lib/retry-after.ts';
import type { Seal } from '../lib/seal.ts';
import { Agent } from '../lib/undici.ts';
import { NotIssued } from './authority.ts';
import { accountKeyContext } from './certificate.ts';

interface AccountParts {
  db: Db;
  seal: Seal;
  directory: string;
  email: string | null;
  transport: AcmeTransport;
}

/** Internals of acme-client that we replace or call directly. */
interface Internals {
  http: {
    request: AcmeTransport['request'];
    maxBadNonceRetries: number;
    getDirectory(): Promise<Record<string, unknown>>;
  };
  api: { createAccount(data: { termsOfServiceAgreed: true; contact?: string[] }): Promise<unknown> };
}

export interface AcmeSession {
  client: Client;
  directory(): Promise<Record<string, unknown>>;
}

const maxBadNonceRetries = 20;

/** A new private key for a certificate or an account. */
export const newKeyPem = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;

export class AcmeAccount {
  readonly #parts: AccountParts;
  #session: Promise<AcmeSession> | null = null;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Registers the account if there is none yet. */
  session(): Promise<AcmeSession> {
    this.#session ??= this.#open().catch((error) => {
      this.#session = null;
      throw error;
    });
    return this.#session;
  }

  /** For an account that the authority no longer knows: the next session registers it again. */
  async forget(url: string): Promise<void> {
    this.#session = null;
    const { db, directory } = this.#parts;
    await db
      .updateTable('acme_account')
      .set({ url: null })
      .where('directory', '=', directory)
      .where('url', '=', url)
      .execute();
  }

  async #open(): Promise<AcmeSession> {
    const { db, seal, directory, email, transport } = this.#parts;
    // Loaded here because it takes some twenty megabytes that most installations never need.
    const { default: acme } = await import('acme-client');
    const row = await this.#find();
    const client = new acme.Client({
      directoryUrl: directory,
      accountKey: seal.open(row.key_sealed, accountKeyContext(directory)),
      ...(row.url !== null && { accountUrl: row.url }),
    });
    const { http, api } = client as unknown as Internals;
    http.request = transport.request;
    http.maxBadNonceRetries = maxBadNonceRetries;
    if (row.url === null) {
      // Not client.createAccount(): if the account exists, that sends an empty update, which authorities refuse.
      await api.createAccount({ termsOfServiceAgreed: true, ...(email !== null && { contact: [`mailto:${email}`] }) });
      const url = client.getAccountUrl();
      await db.updateTable('acme_account').set({ url }).where('directory', '=', directory).execute();
    }
    return { client, directory: () => http.getDirectory() };
  }

  /** If several processes create a key at once, the first to write it wins. */
  async #find() {
    const { db, seal, directory } = this.#parts;
    await db
      .insertInto('acme_account')
      .values({ directory, url: null, key_sealed: seal.seal(newKeyPem(), accountKeyContext(directory)) })
      .onConflict((conflict) => conflict.column('directory').doNothing())
      .execute();
    return db.selectFrom('acme_account').selectAll().where('directory', '=', directory).executeTakeFirstOrThrow();
  }
}

const timeoutMs = 30_000;
const maxBytes = 1024 * 1024;
const errorPrefix = 'urn:ietf:params:acme:error:';

/** The form that acme-client expects. */
interface AcmeResponse {
  status: number;
  headers: Record<string, string | undefined>;
  // biome-ignore lint/suspicious/noExplicitAny: its form depends on the request
  data: any;
}

interface AcmeTransport {
  request(url: string, method: string, options?: { data?: unknown }): Promise<AcmeResponse>;
  close(): Promise<void>;
}

/** The authority's error (RFC 7807). */
export class AcmeProblem extends Error {
  readonly status: number;
  /** Without the common prefix; empty: the authority gave none. */
  readonly type: string;
  readonly retryAfterMs: number | null;

  constructor(status: number, type: string, detail: string, retryAfterMs: number | null) {
    super(detail);
    this.status = status;
    this.type = type;
    this.retryAfterMs = retryAfterMs;
  }
}

/** `ca`: a root to trust in addition to the default ones. */
export function createTransport({ ca, clock, userAgent }: { ca: string | null; clock: Clock; userAgent: string }) {
  const trusted = ca === null ? {} : { ca: [...getCACertificates('default'), ca] };
  const agent = new Agent({ connect: { timeout: timeoutMs, ...trusted }, maxResponseSize: maxBytes });
  const transport: AcmeTransport = {
    async request(url, method, { data } = {}) {
      let response: AcmeResponse;
      try {
        response = await send(agent, url, method.toUpperCase(), data, userAgent);
      } catch (error) {
        throw new NotIssued(`The certificate authority does not answer: ${reasonOf(error)}.`, null, error);
      }
      // acme-client itself repeats the request with a new nonce.
      if (response.status >= 400 && typeOf(response) !== 'badNonce') throw problemOf(response, clock.now());
      return response;
    },
    close: () => agent.destroy(),
  };
  return transport;
}

async function send(
  agent: Agent,
  url: string,
  method: string,
  data: unknown,
  userAgent: string,
): Promise<AcmeResponse> {
  const { request } = await import('undici');
  const answer = await request(url, {
    method: method as 'GET' | 'HEAD' | 'POST',
    dispatcher: agent,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    headers: { 'user-agent': userAgent, ...(data !== undefined && { 'content-type': 'application/jose+json' }) },
    ...(data !== undefined && { body: JSON.stringify(data) }),
  });
  const headers = Object.fromEntries(
    Object.entries(answer.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
  const text = await answer.body.text();
  const isJson = /\bjson\b/.test(headers['content-type'] ?? '') && text !== '';
  return { status: answer.statusCode, headers, data: isJson ? JSON.parse(text) : text };
}

function typeOf({ data }: AcmeResponse): string {
  const type = typeof data?.type === 'string' ? data.type : '';
  return type.startsWith(errorPrefix) ? type.slice(errorPrefix.length) : '';
}

function problemOf(response: AcmeResponse, nowMs: number): AcmeProblem {
  const detail = typeof response.data?.detail === 'string' ? response.data.detail : `status ${response.status}`;
  const retryAfterMs = readRetryAfter(response.headers['retry-after'], nowMs);
  return new AcmeProblem(response.status, typeOf(response), detail, retryAfterMs);
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return typeof code === 'string' ? code : String(message ?? 'unknown');
}
