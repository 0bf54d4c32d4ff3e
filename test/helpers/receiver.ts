// A receiver of webhooks on a free loopback port that keeps what arrives and answers as the test says.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from './wait.ts';

export interface Arrival {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into events of every kind
  event: any;
  at: number;
}

export type Behaviour = (arrival: Arrival, response: ServerResponse) => void;

export const answering =
  (status: number, headers: Record<string, string> = {}, body = ''): Behaviour =>
  (_arrival, response) =>
    void response.writeHead(status, headers).end(body);

export class Receiver {
  readonly arrivals: Arrival[] = [];
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const { headers, url = '/' } = request;
      const arrival = { path: url, headers, body, event: body && JSON.parse(body), at: Date.now() };
      this.arrivals.push(arrival);
      this.behave(arrival, response);
    });
  });
  connections = 0;
  behave: Behaviour;

  private constructor(behave: Behaviour) {
    this.behave = behave;
    this.#server.on('connection', () => this.connections++);
  }

  static async open(behave: Behaviour = answering(200)): Promise<Receiver> {
    const receiver = new Receiver(behave);
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  async has(count: number, timeoutMs?: number): Promise<Arrival[]> {
    return until(
      `${count} arrivals, of which there are ${this.arrivals.length}`,
      () => (this.arrivals.length >= count ? this.arrivals : undefined),
      timeoutMs,
    );
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}
