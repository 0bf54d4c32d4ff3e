// The receiver of all log lines, by OTLP: it refuses every batch with a line of the attacker, and knows which lines came.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export class LogReceiver {
  readonly url: string;
  readonly #server: Server;
  #refused = 'no project yet';
  /** By what a line contains. */
  readonly #waiting = new Map<string, () => void>();

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/logs`;
    server.on('request', async (request, response) => {
      const body = await text(request).catch(() => '');
      const isRefused = body.includes(this.#refused);
      if (!isRefused) for (const [part, found] of this.#waiting) if (body.includes(part)) found();
      response.writeHead(isRefused ? 413 : 200, { 'content-type': 'application/json' }).end('{}');
    });
  }

  static async open(): Promise<LogReceiver> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new LogReceiver(server);
  }

  refuse(part: string): void {
    this.#refused = part;
  }

  /** Resolves when a line arrives that contains this. */
  async arrivalOf(part: string): Promise<void> {
    await new Promise<void>((resolve) => this.#waiting.set(part, resolve));
    this.#waiting.delete(part);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
