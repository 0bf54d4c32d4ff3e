// An HTTP/2 stream as the response to a visitor. Writing to a stream that was reset does nothing: as with a connection
// of HTTP/1.1, its `close` is the only sign.
import { constants, type ServerHttp2Stream } from 'node:http2';
import { pairsOf } from '../response-headers.ts';
import type { VisitorResponse } from '../visitor-messages.ts';

/** HTTP/1.1 only: HTTP/2 streams throw on them. */
const dropped = new Set(['connection', 'http2-settings']);
const bodyless = new Set([204, 205, 304]);

function byName(pairs: readonly [string, string][]): Record<string, string[]> {
  const groups = Map.groupBy(
    pairs.filter(([name]) => !dropped.has(name)),
    ([name]) => name,
  );
  return Object.fromEntries([...groups].map(([name, group]) => [name, group.map(([, value]) => value)]));
}

export class Http2Response implements VisitorResponse {
  /** Has no effect: sessions are drained as a whole. */
  shouldKeepAlive = true;
  readonly #stream: ServerHttp2Stream;
  readonly #isHead: boolean;
  #hasBody = true;
  #trailers: Record<string, string[]> = {};

  constructor(stream: ServerHttp2Stream, isHead: boolean) {
    this.#stream = stream;
    this.#isHead = isHead;
  }

  get #isOver(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }

  writeHead(status: number, lines: string[]): void {
    const stream = this.#stream;
    if (this.#isOver) return;
    // Node accepts undefined status codes up to 999 over HTTP/1.1, but none above 599 over HTTP/2.
    const headers = [':status', String(status > 599 ? 502 : status)];
    let hasLength = false;
    for (let i = 0; i < lines.length; i += 2) {
      const name = lines[i]!;
      if (dropped.has(name)) continue;
      if (name === 'content-length') hasLength = true;
      headers.push(name, lines[i + 1]!);
    }
    this.#hasBody = !this.#isHead && !bodyless.has(status);
    // An instance can send trailers only where it sent no length.
    const waitForTrailers = this.#hasBody && !hasLength;
    if (waitForTrailers) stream.once('wantTrailers', () => stream.sendTrailers(this.#trailers));
    stream.respond(headers, { waitForTrailers });
  }

  write(chunk: Buffer): boolean {
    return !this.#hasBody || this.#isOver || this.#stream.write(chunk);
  }

  addTrailers(trailers: readonly [string, string][]): void {
    this.#trailers = byName(trailers);
  }

  end(text?: string): void {
    if (this.#isOver) return;
    if (text !== undefined && this.#hasBody) this.#stream.end(text);
    else this.#stream.end();
  }

  writeContinue(): void {
    this.writeInformation(100, []);
  }

  writeInformation(status: number, lines: string[]): void {
    if (this.#isOver || this.#stream.headersSent || status === 101) return;
    this.#stream.additionalHeaders({ ':status': status, ...byName(pairsOf(lines)) });
  }

  destroy(): void {
    this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  }

  on(event: 'close' | 'drain', listener: () => void): this {
    this.#stream.on(event, listener);
    return this;
  }

  off(event: 'close', listener: () => void): this {
    this.#stream.off(event, listener);
    return this;
  }
}
