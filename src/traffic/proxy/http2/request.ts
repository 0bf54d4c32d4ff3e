// An HTTP/2 stream as a visitor's request. Listeners go straight to the stream.
import type { ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { VisitorRequest } from '../visitor-messages.ts';
import type { Http2Head } from './head.ts';

export class Http2Request implements VisitorRequest {
  readonly method: string;
  readonly url: string;
  readonly httpVersion = '2.0';
  readonly rawHeaders: string[];
  readonly socket: Socket;
  complete: boolean;
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream, { method, path, rawHeaders }: Http2Head, socket: Socket) {
    this.#stream = stream;
    this.method = method;
    this.url = path;
    this.rawHeaders = rawHeaders;
    this.socket = socket;
    this.complete = stream.endAfterHeaders;
    // A reset with NO_ERROR also emits `end`, but on a closed stream: then the request is not complete.
    if (!this.complete) {
      stream.once('end', () => {
        this.complete = !stream.closed;
      });
    }
  }

  get readableEnded(): boolean {
    return this.#stream.readableEnded;
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  on(event: 'data' | 'end', listener: (chunk: Buffer) => void): this {
    this.#stream.on(event, listener);
    return this;
  }

  off(event: 'data' | 'end', listener: (chunk: Buffer) => void): this {
    this.#stream.off(event, listener);
    return this;
  }

  once(event: 'close', listener: () => void): this {
    this.#stream.once(event, listener);
    return this;
  }

  destroy(): void {
    this.#stream.close();
  }
}
