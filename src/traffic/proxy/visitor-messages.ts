// What an exchange needs of a visitor's request and of the answer to it, whichever HTTP they travel over. The messages of
// node:http are such as they are; http2-request.ts and http2-response.ts give the streams of HTTP/2 the same face.
import type { Socket } from 'node:net';

export interface VisitorRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly httpVersion: string;
  /** Names and values in turn, as HTTP/1.1 has them. */
  readonly rawHeaders: string[];
  /** The connection, which several requests may share. */
  readonly socket: Socket;
  /** The whole of it came: an end without this is none. */
  readonly complete: boolean;
  readonly readableEnded: boolean;
  pause(): unknown;
  resume(): unknown;
  on(event: 'data', listener: (chunk: Buffer) => void): this;
  on(event: 'end', listener: () => void): this;
  off(event: 'data', listener: (chunk: Buffer) => void): this;
  off(event: 'end', listener: () => void): this;
  once(event: 'close', listener: () => void): this;
  /** Nothing more of it is taken. */
  destroy(): unknown;
}

export interface VisitorResponse {
  shouldKeepAlive: boolean;
  writeHead(status: number, headers: string[]): unknown;
  /** False: wait for `drain`. */
  write(chunk: Buffer): boolean;
  addTrailers(trailers: readonly [string, string][]): void;
  end(text?: string): unknown;
  writeContinue(): void;
  writeInformation?(status: number, headers: string[]): unknown;
  /** Breaks it off, so that the visitor can tell it from an end. */
  destroy(): unknown;
  /** Of a connection that becomes a tunnel; HTTP/2 has none. */
  detachSocket?(socket: Socket): void;
  on(event: 'close' | 'drain', listener: () => void): this;
  off(event: 'close', listener: () => void): this;
}
