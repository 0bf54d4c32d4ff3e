// The API as a client uses it that gives up on nothing: it asks either service, sends a POST again with the same
// Idempotency-Key until it is answered, and remembers what was acknowledged.
import { adminToken } from '../helpers/app.ts';
import type { Acknowledged } from './records.ts';

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  body: any;
}

const answerWithinMs = 15_000;
const retryMs = 500;
/** Longer than an idempotency key stays claimed by a process that was killed. */
const giveUpAfterMs = 240_000;

export class Ledger {
  readonly acknowledged: Acknowledged[] = [];
  /** Posted, with an answer or without. A project has its key as its name, a deployment as its note. */
  readonly keys: string[] = [];
  readonly #urls: string[];
  #turn = 0;

  constructor(urls: string[]) {
    this.#urls = urls;
  }

  /** The first answer that is about the request, from whichever service gives it. */
  async get(path: string): Promise<Answer> {
    return this.#insist(path, {});
  }

  async post(path: string, key: string, body: object | undefined, what?: Acknowledged['what']): Promise<Answer> {
    const answer = await this.#insist(path, {
      method: 'POST',
      headers: { 'idempotency-key': key, ...(body && { 'content-type': 'application/json' }) },
      body: body && JSON.stringify(body),
    });
    if (what && answer.status < 300) this.acknowledged.push({ what, id: answer.body.id });
    return answer;
  }

  async patch(path: string, body: object): Promise<Answer> {
    const headers = { 'content-type': 'application/json' };
    return this.#insist(path, { method: 'PATCH', headers, body: JSON.stringify(body) });
  }

  async #insist(path: string, options: RequestInit): Promise<Answer> {
    const giveUpAt = Date.now() + giveUpAfterMs;
    for (;;) {
      const url = this.#urls[this.#turn++ % this.#urls.length]!;
      const answer = await ask(url + path, options).catch((error) => ({ status: 0, body: String(error) }));
      const { status, body } = answer;
      const isFinal = status >= 200 && status < 500 && status !== 429 && body.error?.code !== 'idempotency_in_flight';
      if (isFinal) return answer;
      if (Date.now() > giveUpAt)
        throw new Error(`no answer to ${options.method ?? 'GET'} ${path}: ${status} ${JSON.stringify(body)}`);
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}

async function ask(url: string, { headers, ...options }: RequestInit): Promise<Answer> {
  const response = await fetch(url, {
    ...options,
    headers: { authorization: `Bearer ${adminToken}`, ...headers },
    signal: AbortSignal.timeout(answerWithinMs),
  });
  return { status: response.status, body: await response.json() };
}
