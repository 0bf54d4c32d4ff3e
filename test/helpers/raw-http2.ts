// HTTP/2 by hand: raw frames out, and raw frames in. Heads are not compressed.
import { after } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { host } from './router.ts';
import { ca } from './router-certificates.ts';
import { until } from './wait.ts';

export const frameTypes = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, continuation: 9 } as const;

export interface Frame {
  type: number;
  flags: number;
  stream: number;
  payload: Buffer;
}

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** An HPACK length with a prefix of seven bits. */
function hpackLength(length: number): Buffer {
  if (length < 127) return Buffer.from([length]);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

/** An HPACK header block; one character of a name or value per byte. */
export function block(lines: readonly (readonly [string, string])[]): Buffer {
  const parts = lines.flatMap((line) => [
    Buffer.from([0]),
    ...line.flatMap((text) => [hpackLength(text.length), Buffer.from(text, 'latin1')]),
  ]);
  return Buffer.concat(parts);
}

export const requestLines = (method = 'GET', path = '/'): [string, string][] => [
  [':method', method],
  [':scheme', 'https'],
  [':authority', host],
  [':path', path],
];

export class RawHttp2 {
  readonly socket: TLSSocket;
  readonly frames: Frame[] = [];
  closed = false;
  #rest: Buffer = Buffer.alloc(0);

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', servername: host, ca, ALPNProtocols: ['h2'] });
    after(() => this.socket.destroy());
    this.socket.on('error', () => {}); // a reset is also followed by a close
    this.socket.on('close', () => {
      this.closed = true;
    });
    this.socket.on('data', (chunk: Buffer) => this.#take(chunk));
    this.socket.write(preface);
    this.write(frame(frameTypes.settings, 0, 0));
  }

  write(bytes: Buffer): void {
    if (!this.closed) this.socket.write(bytes);
  }

  /** Sends a head in one frame; flags: 1 no body follows, 4 the head is complete. */
  headers(stream: number, lines: readonly (readonly [string, string])[], flags = 5): void {
    this.write(frame(frameTypes.headers, flags, stream, block(lines)));
  }

  /** Waits for a frame. */
  next(type: number, stream?: number): Promise<Frame> {
    const isIt = (one: Frame) => one.type === type && (stream === undefined || one.stream === stream);
    return until(`a frame of type ${type}`, () => this.frames.find(isIt));
  }

  /** What a stream ended with: a status of HPACK's static table, a reset, or the end of the session. */
  outcome(stream: number): Promise<string> {
    return until(`an outcome of stream ${stream}`, () => {
      const last = this.frames.find((one) => one.stream === stream && (one.type === 1 || one.type === 3));
      if (this.closed || this.frames.some(({ type }) => type === frameTypes.goaway)) return 'goaway';
      if (last?.type === frameTypes.reset) return `reset ${last.payload.readUInt32BE(0)}`;
      const status = last && { 136: '200', 140: '400', 141: '404', 142: '500' }[last.payload[0]!];
      return last && `status ${status ?? 'other'}`;
    });
  }

  #take(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 9) {
      const length = this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < 9 + length) return;
      this.frames.push({
        type: this.#rest[3]!,
        flags: this.#rest[4]!,
        stream: this.#rest.readUInt32BE(5),
        payload: this.#rest.subarray(9, 9 + length),
      });
      this.#rest = this.#rest.subarray(9 + length);
    }
  }
}
