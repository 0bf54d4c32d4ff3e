// One HTTP request to a receiver, over a connection that stays open for the next. Redirects are not followed.
import { Agent } from 'undici';
import type { AddressPolicy } from '../lib/address.ts';
import { AddressRefused, guardedConnector, type Lookup } from './connect.ts';

export const keptAnswerBytes = 16 * 1024;

export interface Sent {
  /** null: there was no answer. */
  status: number | null;
  error: string | null;
  answer: string | null;
  retryAfter: string | undefined;
}

export interface Sender {
  send(url: URL, headers: Record<string, string>, body: string): Promise<Sent>;
  /** Ends what is under way. */
  close(): Promise<void>;
}

export interface SenderOptions {
  policy: AddressPolicy;
  lookup: Lookup;
  /** From the first packet to the last byte of the answer that is kept. */
  timeoutMs: number;
}

export function createSender({ policy, lookup, timeoutMs }: SenderOptions): Sender {
  const agent = new Agent({
    connect: guardedConnector(policy, lookup, timeoutMs),
    connections: null,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    keepAliveMaxTimeout: 300_000,
    // One limit for all of it, below.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  return {
    async send(url, headers, body) {
      const abort = new AbortController();
      const timer = setTimeout(() => abort.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      let status: number | null = null;
      try {
        const response = await agent.request({
          origin: url.origin,
          path: url.pathname + url.search,
          method: 'POST',
          headers,
          body,
          signal: abort.signal,
        });
        const answer = await readStart(response.body);
        status = response.statusCode;
        return { status, error: null, answer, retryAfter: response.headers['retry-after']?.toString() };
      } catch (error) {
        return { status, error: describe(error), answer: null, retryAfter: undefined };
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => agent.destroy(),
  };
}

/** The first bytes, as text that any database keeps. What is longer is not read to its end. */
async function readStart(body: AsyncIterable<Buffer> & { destroy(): unknown }): Promise<string | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= keptAnswerBytes) break; // leaving the loop destroys the body, and with it the connection
  }
  if (length === 0) return null;
  const text = Buffer.concat(chunks).subarray(0, keptAnswerBytes).toString('utf8');
  return text.replaceAll('\0', '\ufffd');
}

function describe(error: unknown): string {
  if (error instanceof AddressRefused) return `refused: ${error.message}`;
  const { message, code, cause } = error as Error & { code?: string };
  const inner = cause instanceof Error && cause.message ? cause.message : '';
  return (message || inner || code || String(error)).slice(0, 500).toWellFormed().replaceAll('\0', '');
}
