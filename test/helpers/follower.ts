// A follower of the event stream that keeps all it receives.
import assert from 'node:assert/strict';
import { adminToken } from './app.ts';
import { until } from './wait.ts';

export interface FollowerOptions {
  /** Of another stream than that of events. */
  path?: string;
  query?: string;
  headers?: Record<string, string>;
  token?: string;
}

export interface StreamedEvent {
  id: string;
  event: string;
  data: { id: string; sequence: number; type: string; project_id: string };
}

export class Follower {
  text = '';
  ended = false;
  headers = new Headers();
  readonly #abort = new AbortController();

  /** Resolves once the stream has begun, which fails with any status but 200. */
  static async open(
    url: string,
    { path = '/v1/events/stream', query = '', headers, token = adminToken }: FollowerOptions = {},
  ): Promise<Follower> {
    const follower = new Follower();
    const response = await fetch(`${url}${path}${query}`, {
      headers: { authorization: `Bearer ${token}`, ...headers },
      signal: follower.#abort.signal,
    });
    assert.equal(response.status, 200);
    follower.headers = response.headers;
    void follower.#read(response);
    await until('the head of the stream', () => follower.text !== '' || follower.ended);
    return follower;
  }

  async #read(response: Response): Promise<void> {
    try {
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) this.text += chunk;
    } catch {
      // closed by this side
    }
    this.ended = true;
  }

  get events(): StreamedEvent[] {
    const fields = [...this.text.matchAll(/id: (.*)\nevent: (.*)\ndata: (.*)\n\n/g)];
    return fields.map(([, id, event, data]) => ({ id: id!, event: event!, data: JSON.parse(data!) }));
  }

  /** What changed, as told to those who follow with `changes=true`. */
  get hints(): { project_id: string | null; environment: string | null }[] {
    return [...this.text.matchAll(/event: changed\ndata: (.+)\n\n/g)].map(([, data]) => JSON.parse(data!));
  }

  has(count: number): Promise<StreamedEvent[]> {
    return until(`${count} events`, () => this.events.length >= count && this.events);
  }

  close(): void {
    this.#abort.abort();
  }
}
