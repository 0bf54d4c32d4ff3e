// HTTP by hand: raw bytes out, and raw bytes in.
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';

const withinMs = 60_000;

/** A connection, and what it has received so far, one character per byte. */
export class Wire {
  readonly socket: Socket;
  text = '';
  closed = false;
  #onChange: () => void = () => {};

  constructor(port: number, host = '127.0.0.1') {
    this.socket = connect({ port, host, allowHalfOpen: true });
    this.socket.setEncoding('latin1');
    this.socket.on('data', (chunk) => {
      this.text += chunk;
      this.#onChange();
    });
    this.socket.on('error', () => {}); // a reset is also followed by a close
    this.socket.on('end', () => this.socket.end());
    this.socket.on('close', () => {
      this.closed = true;
      this.#onChange();
    });
  }

  write(text: string): void {
    this.socket.write(text, 'latin1');
  }

  /** Waits until the condition holds; fails when the connection closes or a minute has passed. */
  async until(what: string, wanted: () => boolean): Promise<void> {
    const giveUpAt = Date.now() + withinMs;
    const timer = setTimeout(() => this.#onChange(), withinMs);
    while (!wanted()) {
      if (this.closed || Date.now() >= giveUpAt) assert.fail(`${what}; came back: ${this.text.slice(0, 500)}`);
      await new Promise<void>((resolve) => {
        this.#onChange = resolve;
      });
    }
    clearTimeout(timer);
  }

  /** Everything received until the other end closed. */
  async untilClosed(): Promise<string> {
    const giveUp = setTimeout(() => this.socket.destroy(), withinMs);
    const startedAt = Date.now();
    while (!this.closed) {
      await new Promise<void>((resolve) => {
        this.#onChange = resolve;
      });
    }
    clearTimeout(giveUp);
    if (Date.now() - startedAt >= withinMs) assert.fail(`not closed; came back: ${this.text.slice(0, 500)}`);
    return this.text;
  }

  async head(): Promise<string> {
    await this.until('a head', () => this.text.includes('\r\n\r\n'));
    return this.text.slice(0, this.text.indexOf('\r\n\r\n') + 4);
  }
}

export const refusesConnections = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('error', () => resolve(true));
    socket.on('connect', () => {
      socket.destroy();
      resolve(false);
    });
  });

/** The status of the first response in the text; 0 where there is none. */
export const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
