// A receiver of webhooks on a free loopback port: checks each delivery, and forwards it where `forward` is set.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verifySignature } from '../../client/signature.ts';
import type { EventSummary } from './event-line.ts';

export interface Arrival {
  event: EventSummary;
  verified: boolean;
  /** The response of the address it was forwarded to; null: it was not forwarded. */
  answer: string | null;
}

interface ReceiverOptions {
  forward: string | undefined;
  onArrival(arrival: Arrival): void;
}

export interface Receiver {
  url: string;
  /** Known only once the webhook is registered, which is after the receiver listens. */
  secret(secret: string): void;
  close(): Promise<void>;
}

const mostBytes = 2 * 1024 * 1024;
const forwardTimeoutMs = 14_000;

/** The header's name is a setting of the service; the one of Standard Webhooks is computed differently. */
function signatureOf(headers: IncomingHttpHeaders): string | undefined {
  const names = Object.keys(headers).filter((name) => name.endsWith('-signature') && name !== 'webhook-signature');
  return headers[names[0] ?? ''] as string | undefined;
}

async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > mostBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function eventOf(body: Buffer): EventSummary | null {
  try {
    const event = JSON.parse(body.toString('utf8'));
    return typeof event?.id === 'string' && typeof event.type === 'string' && typeof event.created_at === 'string'
      ? event
      : null;
  } catch {
    return null;
  }
}

async function handOn(
  url: string,
  headers: IncomingHttpHeaders,
  body: Buffer,
): Promise<{ status: number; text: string }> {
  const own = new Set(['host', 'connection', 'content-length', 'transfer-encoding']);
  const passed = Object.entries(headers).filter(([name, value]) => !own.has(name) && typeof value === 'string');
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: Object.fromEntries(passed) as Record<string, string>,
      body: new Uint8Array(body),
      redirect: 'manual',
      signal: AbortSignal.timeout(forwardTimeoutMs),
    });
    await response.body?.cancel();
    return { status: response.status, text: String(response.status) };
  } catch (error) {
    const cause = (error as Error).cause as Error | undefined;
    return { status: 502, text: cause?.message || (error as Error).message };
  }
}

export async function openReceiver({ forward, onArrival }: ReceiverOptions): Promise<Receiver> {
  const { promise: known, resolve: secret } = Promise.withResolvers<string>();
  const handle = async (request: IncomingMessage): Promise<number> => {
    const body = request.method === 'POST' ? await readBody(request) : null;
    const event = body && eventOf(body);
    if (!body || !event) return 400;
    const verified = await verifySignature(body, signatureOf(request.headers), await known);
    const answer = forward && verified ? await handOn(forward, request.headers, body) : null;
    onArrival({ event, verified, answer: answer?.text ?? null });
    return verified ? (answer?.status ?? 200) : 401;
  };
  const server = createServer((request, response) => {
    handle(request).then(
      (status) => response.writeHead(status).end(),
      () => response.destroy(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    secret,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
