// One HTTP request to a receiver, over a connection that stays open for the next. Redirects are not followed.
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { AddressPolicy } from '../lib/address.ts';
import { limitTime, type TimeLimit } from '../lib/time-limit.ts';
import { Agent } from '../lib/undici.ts';
import { AddressRefused, guardedConnector, type Lookup } from './receiver-addresses.ts';

const keptAnswerBytes = 16 * 1024;

export interface Sent {
  /** null: no answer. */
  status: number | null;
  error: string | null;
  answer: string | null;
  retryAfter: string | undefined;
}

export interface Sender {
  send(url: URL, headers: Record<string, string>, body: string): Promise<Sent>;
  /** Aborts the requests in flight. */
  close(): Promise<void>;
}

interface SenderOptions {
  policy: AddressPolicy;
  lookup: Lookup;
  /** From the first packet to the last byte of the answer that is kept. */
  timeoutMs: number;
}

export function createSender({ policy, lookup, timeoutMs }: SenderOptions): Sender {
  const { connect, leadsInside } = guardedConnector(policy, lookup, timeoutMs);
  const agent = new Agent({
    connect,
    connections: null,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    keepAliveMaxTimeout: 300_000,
    // `ResponseCollector` limits the whole request.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  return {
    send(url, headers, body) {
      return new Promise((resolve) => {
        const collector = new ResponseCollector(resolve, timeoutMs, () => leadsInside(url.origin));
        agent.dispatch(
          { origin: url.origin, path: url.pathname + url.search, method: 'POST', headers, body },
          collector,
        );
      });
    },
    close: () => agent.destroy(),
  };
}

/** Collects the answer to one request. Undici's own streams would cost more than all the rest of a delivery. */
class ResponseCollector implements Dispatcher.DispatchHandler {
  readonly #resolve: (sent: Sent) => void;
  readonly #limit: TimeLimit;
  readonly #timeoutMs: number;
  readonly #chunks: Buffer[] = [];
  #length = 0;
  readonly #leadsInside: () => boolean;
  /** The answer comes from a private address, which tenants may not read: only its status is kept. */
  #hidesAnswer = false;
  #status: number | null = null;
  #retryAfter: string | undefined;
  #controller: Dispatcher.DispatchController | null = null;
  #over = false;

  constructor(resolve: (sent: Sent) => void, timeoutMs: number, leadsInside: () => boolean) {
    this.#resolve = resolve;
    this.#leadsInside = leadsInside;
    this.#timeoutMs = timeoutMs;
    this.#limit = limitTime(timeoutMs, () => this.#giveUp());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#over) controller.abort(new Error('given up'));
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#status = status;
    this.#hidesAnswer = this.#leadsInside();
    this.#retryAfter = headers['retry-after']?.toString();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < keptAnswerBytes) return;
    this.#succeed();
    controller.abort(new Error('enough'));
  }

  onResponseEnd(): void {
    this.#succeed();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#end({ status: null, error: describe(error), answer: null, retryAfter: undefined });
  }

  /** The limit is over, whether the request is still connecting, being sent or being answered. */
  #giveUp(): void {
    const error = `no answer within ${this.#timeoutMs} ms`;
    this.#end({ status: null, error, answer: null, retryAfter: undefined });
    this.#controller?.abort(new Error(error));
  }

  #succeed(): void {
    const answer = this.#length === 0 || this.#hidesAnswer ? null : textOf(this.#chunks);
    this.#end({ status: this.#status, error: null, answer, retryAfter: this.#retryAfter });
  }

  #end(sent: Sent): void {
    if (this.#over) return;
    this.#over = true;
    this.#limit.end();
    this.#resolve(sent);
  }
}

/** The first bytes, as text that both databases can store. */
function textOf(chunks: Buffer[]): string {
  return Buffer.concat(chunks).subarray(0, keptAnswerBytes).toString('utf8').replaceAll('\0', '\ufffd');
}

function describe(error: unknown): string {
  if (error instanceof AddressRefused) return `refused: ${error.message}`;
  const { message, code, cause } = error as Error & { code?: string };
  const inner = cause instanceof Error && cause.message ? cause.message : '';
  return (message || inner || code || String(error)).slice(0, 500).toWellFormed().replaceAll('\0', '');
}
