// Follows the event stream, or that of a log. After a lost connection it reconnects and resumes after the last event it
// received, so that no event is missed, and none repeated unless the service has lost that event. EventSource cannot be
// used: it sends no Authorization header.
import { errorOfAnswer, SluiceError } from './error.ts';
import type { QueryValues, StreamOptions } from './request.ts';
import { delayMs, mayRetry, pause } from './retry.ts';
import { type Message, MessageParser } from './sse.ts';
import type { Transport } from './transport.ts';
import type { ChangeNotice, SluiceEvent } from './types.ts';

/** The service sends something every 15 seconds, so a connection silent for this long is dead. */
const silenceMs = 45_000;
const defaultRetryMs = 2000;
const maxRetryMs = 30_000;
/** Sorts before the id of every event. */
const beforeAll = `evt_${'0'.repeat(26)}`;

const eventsPath = '/events/stream';
const attempted = { method: 'GET' as const, idempotencyKey: undefined, ifMatch: undefined };

/** The interval that the service sent, ± 25 %; doubled with every further failure. */
function reconnectMs(failures: number, retryMs: number, error: SluiceError | null, random: number): number {
  if (error?.retryAfterS) return delayMs(0, error.retryAfterS, random);
  return Math.min(maxRetryMs, retryMs * 2 ** Math.max(0, failures - 2)) * (0.75 + random / 2);
}

/** What a stream carries: events and notices, or entries of a log. */
function readMessage<T>({ event, data }: Message): T {
  try {
    return event === 'changed' ? { ...JSON.parse(data), type: 'changed' } : JSON.parse(data);
  } catch (cause) {
    const message = `the stream has a message that is not JSON: ${JSON.stringify(data.slice(0, 200))}`;
    throw new SluiceError({ code: 'unexpected_answer', message, cause });
  }
}

function timeOf(response: Response): string | undefined {
  const ms = Date.parse(response.headers.get('date') ?? '');
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

export class Follower<T = SluiceEvent | ChangeNotice> {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #query: QueryValues;
  readonly #options: StreamOptions;
  #lastEventId: string;
  /** The latest event before the stream was opened: where to resume while no event has arrived yet. */
  #latestBefore: string | null = null;
  #retryMs = defaultRetryMs;
  #failures = 0;
  #wasOpen = false;
  /** By the clock of the service. */
  #openedAt: string | undefined;
  #state: 'open' | 'lost' | null = null;

  constructor(transport: Transport, path: string, query: QueryValues, options: StreamOptions) {
    this.#transport = transport;
    this.#path = path;
    this.#query = query;
    this.#options = options;
    this.#lastEventId = options.lastEventId ?? '';
  }

  async *follow(): AsyncGenerator<T, void, undefined> {
    const { signal } = this.#options;
    while (!signal?.aborted) {
      let failure: SluiceError | null = null;
      try {
        yield* this.#connection();
      } catch (error) {
        if (signal?.aborted) return;
        if (!(error instanceof SluiceError) || !this.#mayReconnect(error)) throw error;
        failure = error;
      }
      if (signal?.aborted) return;
      this.#enter('lost');
      const waitMs = reconnectMs(this.#failures++, this.#retryMs, failure, Math.random());
      await pause(waitMs, signal).catch(() => undefined);
    }
  }

  /** A stream that was open once is retried for ever, one that never was only as often as other requests. */
  #mayReconnect(error: SluiceError): boolean {
    if (!mayRetry(attempted, error)) return false;
    return this.#wasOpen || (this.#latestBefore !== null && this.#failures < this.#transport.maxRetries);
  }

  #enter(state: 'open' | 'lost'): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#options.onState?.(state);
  }

  async *#connection(): AsyncGenerator<T, void, undefined> {
    const connection = new AbortController();
    const abort = () => connection.abort();
    const { signal } = this.#options;
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    try {
      this.#latestBefore ??= this.#lastEventId || (await this.#findLatest(connection.signal));
      const response = await this.#open(connection);
      this.#failures = 0;
      this.#wasOpen = true;
      this.#openedAt ??= timeOf(response);
      this.#enter('open');
      yield* this.#read(response.body!.getReader(), connection);
    } finally {
      signal?.removeEventListener('abort', abort);
      connection.abort();
    }
  }

  async #findLatest(signal: AbortSignal): Promise<string> {
    if (this.#path !== eventsPath) return '';
    const list = { method: 'GET' as const, path: '/events', query: { limit: 1 }, options: { signal } };
    const { data } = (await this.#transport.send(list)) as { data: { id: string }[] };
    return data[0]?.id ?? beforeAll;
  }

  #open(connection: AbortController): Promise<Response> {
    const what = `GET ${this.#path}`;
    const resumeAfter = this.#lastEventId || (this.#wasOpen ? this.#latestBefore : '');
    return this.#transport.limited(what, connection.signal, async (signal) => {
      // The time limit applies only until the headers arrive: the connection's own signal stays in use after that.
      signal.addEventListener('abort', () => connection.abort(signal.reason), { signal: connection.signal });
      const headers = {
        accept: 'text/event-stream',
        ...(resumeAfter && { 'last-event-id': resumeAfter }),
      };
      const response = await this.#transport.open(this.#request(), { headers, signal: connection.signal });
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') && response.body !== null;
      if (response.ok && isStream) return response;
      throw errorOfAnswer(what, response, await response.text());
    });
  }

  /** A log that said nothing before the connection was lost goes on from when it was opened. */
  #request() {
    const isLog = this.#path !== eventsPath;
    const since = isLog && this.#lastEventId === '' ? this.#openedAt : undefined;
    const query = since === undefined ? this.#query : { since, ...this.#query };
    return { method: 'GET' as const, path: this.#path, query };
  }

  async *#read(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    connection: AbortController,
  ): AsyncGenerator<T, void, undefined> {
    const parser = new MessageParser(this.#lastEventId);
    const decoder = new TextDecoder();
    for (;;) {
      const silence = setTimeout(() => connection.abort(), silenceMs);
      // If the connection breaks, reading ends here; the next connection sends an incomplete message again.
      const piece = await reader.read().catch(() => null);
      clearTimeout(silence);
      if (piece === null || piece.done) return;
      for (const message of parser.feed(decoder.decode(piece.value, { stream: true }))) {
        this.#lastEventId = parser.lastEventId;
        if (message.event === 'reset') this.#options.onReset?.();
        else yield readMessage(message);
      }
      this.#lastEventId = parser.lastEventId;
      this.#retryMs = parser.retryMs ?? this.#retryMs;
    }
  }
}
