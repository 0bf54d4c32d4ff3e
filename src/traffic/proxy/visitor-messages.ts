// A visitor's request and the response to it, as an exchange uses them, whichever version of HTTP carries them. The
// classes of node:http satisfy these interfaces as they are; http2-server.ts adapts HTTP/2 streams to them.
import type { Socket } from 'node:net';

export interface VisitorRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly httpVersion: string;
  /** Names and values in turn, as HTTP/1.1 has them. */
  readonly rawHeaders: string[];
  /** The connection, which several requests may share. */
  readonly socket: Socket;
  /** The whole request has arrived; an `end` without this means that it was broken off. */
  readonly complete: boolean;
  readonly readableEnded: boolean;
  pause(): unknown;
  resume(): unknown;
  on(event: 'data', listener: (chunk: Buffer) => void): this;
  on(event: 'end', listener: () => void): this;
  off(event: 'data', listener: (chunk: Buffer) => void): this;
  off(event: 'end', listener: () => void): this;
  once(event: 'close', listener: () => void): this;
  /** Stops reading it. */
  destroy(): unknown;
}

export interface VisitorResponse {
  shouldKeepAlive: boolean;
  writeHead(status: number, headers: string[]): unknown;
  /** Where the head would wait for the first of the body: sends it. */
  flushHeaders?(): void;
  /** False: the caller should wait for `drain`. */
  write(chunk: Buffer): boolean;
  write(text: string, encoding: 'latin1'): boolean;
  /** Of HTTP/1.1: null while a response before this one is under way on the connection. */
  readonly socket?: Socket | null;
  /** Of HTTP/1.1: the body is sent in chunks, each with its length. */
  readonly chunkedEncoding?: boolean;
  addTrailers(trailers: readonly [string, string][]): void;
  end(text?: string): unknown;
  writeContinue(): void;
  writeInformation?(status: number, headers: string[]): unknown;
  /** Breaks it off in a way that the visitor can tell from a regular end. */
  destroy(): unknown;
  /** For a connection that becomes a tunnel, which HTTP/2 does not have. */
  detachSocket?(socket: Socket): void;
  on(event: 'close' | 'drain', listener: () => void): this;
  off(event: 'close', listener: () => void): this;
}
