// HTTP by hand: bytes as they are written, and bytes as they come back.
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';

const withinMs = 10_000;

/** A connection, and all that came back on it so far, one character per byte. */
export class Wire {
  readonly socket: Socket;
  text = '';
  closed = false;
  #heard: () => void = () => {};

  constructor(port: number, host = '127.0.0.1') {
    this.socket = connect({ port, host, allowHalfOpen: true });
    this.socket.setEncoding('latin1');
    this.socket.on('data', (chunk) => {
      this.text += chunk;
      this.#heard();
    });
    this.socket.on('error', () => {}); // a reset is one of the ways to be cut off
    this.socket.on('end', () => this.socket.end());
    this.socket.on('close', () => {
      this.closed = true;
      this.#heard();
    });
  }

  write(text: string): void {
    this.socket.write(text, 'latin1');
  }

  /** Waits until what came back is as wanted. */
  async until(what: string, wanted: () => boolean): Promise<void> {
    const giveUpAt = Date.now() + withinMs;
    const timer = setTimeout(() => this.#heard(), withinMs);
    while (!wanted()) {
      if (this.closed || Date.now() >= giveUpAt) assert.fail(`${what}; came back: ${this.text.slice(0, 500)}`);
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
    clearTimeout(timer);
  }

  /** Everything that came until the other side closed. */
  async untilClosed(): Promise<string> {
    const giveUp = setTimeout(() => this.socket.destroy(), withinMs);
    const startedAt = Date.now();
    while (!this.closed) {
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
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

/** The status of the first answer in the text, 0 where there is none. */
export const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
