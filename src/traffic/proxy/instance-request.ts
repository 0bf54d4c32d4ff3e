// What is sent to an instance: the bytes of a request's head, checked as a whole, and then its body.
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { InstanceError, linesPattern } from './response-reader.ts';

export interface InstanceRequest {
  path: string;
  method: string;
  /** Names and values in turn, without those that say how long the connection lasts. */
  headers: readonly string[];
  body: Readable | null;
  /** The protocol that the visitor wants to switch to. */
  upgrade: string | null;
  /** Over a new connection: the instance has closed a kept one, and may have closed the others too. */
  anew: boolean;
}

/** Methods whose requests say how long their body is, even where they have none. */
const withBody = new Set(['PUT', 'POST', 'PATCH', 'QUERY', 'PROPFIND', 'PROPPATCH']);

/** The bytes of a request before its body. */
export interface Head {
  withoutBody: string;
  /** Ends before the first chunk where there is no length. */
  withBody: string;
  length: number | null;
}

const methodPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const badPath = /[^\x21-\xff]/;
const lengthPattern = /^\d{1,15}$/;

/** Null where an instance could read it as something else. The parsers of visitors' requests accept nothing of the kind. */
export function headOf(request: InstanceRequest): Head | null {
  const { method, path, headers, upgrade } = request;
  let host = '';
  let length: string | null = null;
  let count = upgrade === null ? 2 : 3;
  let lines = upgrade === null ? '' : `upgrade: ${upgrade}\r\n`;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    const value = headers[i + 1]!;
    if (name.length === 4 && name.toLowerCase() === 'host') host = value;
    else if (name.length === 14 && name.toLowerCase() === 'content-length') {
      if (length !== null || !lengthPattern.test(value)) return null;
      length = value;
    } else {
      if (name.includes(':') || (name.length === 17 && name.toLowerCase() === 'transfer-encoding')) return null;
      lines += `${name}: ${value}\r\n`;
      count++;
    }
  }
  const connection = upgrade !== null ? 'upgrade' : isLast(request) ? 'close' : 'keep-alive';
  lines = `host: ${host}\r\nconnection: ${connection}\r\n${lines}`;
  if (!methodPattern.test(method) || badPath.test(path)) return null;
  // The pattern alone would take a value with a line end in it for two lines.
  if (!linesPattern.test(lines) || linesIn(lines) !== count) return null;
  const start = `${method} ${path} HTTP/1.1\r\n${lines}`;
  return {
    withoutBody: withBody.has(method) ? `${start}content-length: 0\r\n\r\n` : `${start}\r\n`,
    withBody: length === null ? `${start}transfer-encoding: chunked\r\n` : `${start}content-length: ${length}\r\n\r\n`,
    length: length === null ? null : Number(length),
  };
}

function linesIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/**
 * Whether its connection carries no other after it. Some instances send a body in response to HEAD, which would be read as the
 * next response. Some do not read a body where none is usual: they would take it for the next request.
 */
export const isLast = ({ method, body }: InstanceRequest): boolean =>
  method === 'HEAD' || (body !== null && !withBody.has(method));

export interface UploadOwner {
  /** Before the first byte of the request. */
  onSending(): void;
  /** Some more of the body, or the end of it. */
  onSent(): void;
  destroy(error: Error): void;
}

/** Sends a body at the pace of the instance. Nothing is sent before there is some of it: until then another instance can have it. */
export class Upload {
  isOver = false;
  readonly #socket: Socket;
  readonly #body: Readable;
  readonly #head: Head;
  readonly #owner: UploadOwner;
  #sent = 0;

  constructor(socket: Socket, body: Readable, head: Head, owner: UploadOwner) {
    this.#socket = socket;
    this.#body = body;
    this.#head = head;
    this.#owner = owner;
    body.on('data', this.#onData).on('end', this.#onEnd);
  }

  /** The instance takes what there is. */
  get waitsForVisitor(): boolean {
    return !this.isOver && !this.#socket.writableNeedDrain;
  }

  drained(): void {
    if (!this.isOver) this.#body.resume();
  }

  stop(): void {
    this.isOver = true;
    // What was not read, another attempt can have.
    this.#body.off('data', this.#onData).off('end', this.#onEnd).pause();
  }

  readonly #onData = (chunk: Buffer): void => {
    const socket = this.#socket;
    const { length, withBody } = this.#head;
    if (chunk.length === 0) return; // as a chunk it would be the last one
    if (length !== null && this.#sent + chunk.length > length) {
      this.#fail();
      return;
    }
    if (this.#sent === 0) this.#owner.onSending();
    socket.cork();
    if (this.#sent === 0) socket.write(withBody, 'latin1');
    this.#sent += chunk.length;
    if (length === null) socket.write(`\r\n${chunk.length.toString(16)}\r\n`, 'latin1');
    const takesMore = socket.write(chunk);
    socket.uncork();
    if (!takesMore) this.#body.pause();
    this.#owner.onSent();
  };

  readonly #onEnd = (): void => {
    const { length, withoutBody } = this.#head;
    if (length !== null && this.#sent < length) {
      this.#fail();
      return;
    }
    if (this.#sent === 0) {
      this.#owner.onSending();
      this.#socket.write(withoutBody, 'latin1');
    } else if (length === null) this.#socket.write('\r\n0\r\n\r\n', 'latin1');
    this.stop();
    this.#owner.onSent();
  };

  #fail(): void {
    this.stop();
    this.#owner.destroy(
      new InstanceError('UND_ERR_REQ_CONTENT_LENGTH_MISMATCH', 'the body is not as long as announced'),
    );
  }
}
