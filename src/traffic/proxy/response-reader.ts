// Reads the responses of an instance from the bytes of its connection (RFC 9112). What two readers could understand
// differently is refused, as the parser of visitors' requests does. No I/O.
import { headerIn } from './headers.ts';

/** The codes are those of undici, which earlier versions used: operators know them from the log. */
export class InstanceError extends Error {
  override readonly name = 'InstanceError';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Called while bytes are read. Where one of them throws, so does the reader. Lines are names, in lower case, and values in turn. */
export interface ResponseSink {
  onBegun(): void;
  onInformation(status: number, lines: string[]): void;
  onHead(status: number, lines: string[]): void;
  /** The bytes are valid during the call only. */
  onData(bytes: Buffer): void;
  onEnd(trailers: string[]): void;
  /** The connection is no longer one of HTTP; `rest` is the first of what it carries now. */
  onSwitch(lines: string[], rest: Buffer): void;
}

type ReaderState =
  /** No response is expected. */
  | 'over'
  | 'before head'
  | 'head'
  /** So many bytes. */
  | 'length'
  | 'chunk size'
  | 'chunk'
  | 'chunk end'
  | 'trailers'
  /** As long as the connection lasts. */
  | 'rest';

const lineEnd = Buffer.from('\r\n');
const emptyLine = Buffer.from('\r\n\r\n');
const none = Buffer.alloc(0);

const line = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n/.source;
const headPattern = new RegExp(`^HTTP/1\\.[01] [1-9]\\d\\d(?: [^\\r\\n]*)?\\r\\n(?:${line})*$`);
/** Header lines that every reader understands in one way only. */
export const linesPattern = new RegExp(`^(?:${line})*$`);
const token = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/.source;
const quoted = /"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"/.source;
const chunkSizePattern = new RegExp(`^([0-9a-fA-F]{1,12})(?:;${token}(?:=(?:${token}|${quoted}))?)*$`);
const lengthPattern = /^\d{1,15}$/;
const chunkedPattern = /(?:^|,)[\t ]*chunked$/i;
const closePattern = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i;
const keepAlivePattern = /(?:^|,)[\t ]*keep-alive[\t ]*(?:,|$)/i;
const upgradePattern = /(?:^|,)[\t ]*upgrade[\t ]*(?:,|$)/i;

const refusal = (why: string) => new InstanceError('HPE_INVALID_RESPONSE', `the response is malformed: ${why}`);

export class ResponseReader {
  readonly #sink: ResponseSink;
  readonly #headerBytes: number;
  #state: ReaderState = 'over';
  #isHead = false;
  #maySwitch = false;
  /** What the head says of the body: -1 and '' where it says nothing. */
  #length = -1;
  #encoding = '';
  #connection = '';
  /** Begins with the start of a head or a line, the rest of which has not arrived. */
  #held = none;
  #heldBytes = 0;
  /** How many of them were searched for the end. */
  #searched = 0;
  /** Bytes of the body, or of its chunk, that have not arrived. */
  #left = 0;
  /** The connection can carry another request after this response. */
  keepsAlive = false;
  /** What the instance says for how long it keeps an idle connection; null: nothing. */
  keepAliveS: number | null = null;

  constructor(sink: ResponseSink, headerBytes: number) {
    this.#sink = sink;
    this.#headerBytes = headerBytes;
  }

  /** A request was sent: what arrives from now on is the response to it. */
  expect(method: string, maySwitch: boolean): void {
    this.#state = 'before head';
    this.#isHead = method === 'HEAD';
    this.#maySwitch = maySwitch;
  }

  /** What else arrives is dropped. */
  stop(): void {
    this.#state = 'over';
  }

  /** Throws where this is no response, or more than one. */
  read(chunk: Buffer): void {
    const bytes = this.#heldBytes === 0 ? chunk : this.#joined(chunk);
    this.#heldBytes = 0;
    for (let at = 0; at < bytes.length; ) {
      const to = this.#step(bytes, at);
      if (to === -1) {
        this.#hold(bytes, at);
        return;
      }
      this.#searched = 0;
      at = to;
    }
    this.#held = none;
  }

  /** What arrives byte by byte is neither copied nor searched anew each time: that would cost a thousand times as much. */
  #joined(chunk: Buffer): Buffer {
    const length = this.#heldBytes + chunk.length;
    if (length > this.#held.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, this.#held.length * 2));
      this.#held.copy(larger, 0, 0, this.#heldBytes);
      this.#held = larger;
    }
    chunk.copy(this.#held, this.#heldBytes);
    return this.#held.subarray(0, length);
  }

  #hold(bytes: Buffer, at: number): void {
    this.#heldBytes = bytes.length - at;
    if (bytes.buffer !== this.#held.buffer) this.#held = Buffer.allocUnsafeSlow(Math.max(this.#heldBytes, 64));
    else if (at === 0) return;
    bytes.copy(this.#held, 0, at);
  }

  /** The instance has closed its end. False: in the middle of a response. */
  end(): boolean {
    if (this.#state !== 'rest') return false;
    this.#finish([]);
    return true;
  }

  /** Reads one part of a response. Gives where the next begins, or -1 where this one has not arrived as a whole. */
  #step(bytes: Buffer, at: number): number {
    switch (this.#state) {
      case 'before head':
        if (bytes[at] === 13 || bytes[at] === 10) return at + 1; // some end a response with an empty line too many
        this.#state = 'head';
        this.#sink.onBegun();
        return at;
      case 'head':
        return this.#readHead(bytes, at);
      case 'length':
      case 'chunk':
        return this.#readBody(bytes, at);
      case 'rest':
        this.#sink.onData(bytes.subarray(at));
        return bytes.length;
      case 'chunk size':
        return this.#readChunkSize(bytes, at);
      case 'chunk end':
        if (bytes.length - at < 2) return -1;
        if (bytes[at] !== 13 || bytes[at + 1] !== 10) throw refusal('a chunk is longer than its size');
        this.#state = 'chunk size';
        return at + 2;
      case 'trailers':
        return this.#readTrailers(bytes, at);
      case 'over':
        throw refusal('something follows it');
    }
  }

  /** -1: none; throws where what precedes it is too long. */
  #find(mark: Buffer, bytes: Buffer, at: number): number {
    const end = bytes.indexOf(mark, at + this.#searched);
    this.#searched = Math.max(0, bytes.length - at - mark.length + 1);
    if ((end === -1 ? bytes.length : end) - at <= this.#headerBytes) return end;
    throw new InstanceError('UND_ERR_HEADERS_OVERFLOW', 'the head of the response is too large');
  }

  #readHead(bytes: Buffer, at: number): number {
    const end = this.#find(emptyLine, bytes, at);
    if (end === -1) return -1;
    const text = bytes.toString('latin1', at, end + 2);
    if (!headPattern.test(text)) throw refusal('its head');
    const status = Number(text.slice(9, 12));
    const lines = linesOf(text, text.indexOf('\r\n') + 2);
    const next = end + 4;
    this.#readFraming(text.charCodeAt(7) === 49 /* 1 */, lines);
    if (status >= 200) this.#begin(status, lines);
    else if (status !== 101 && status !== 100) {
      if (!this.keepsAlive || this.#length > 0 || this.#encoding !== '')
        throw refusal(`a ${status} with nothing after it`);
      this.#sink.onInformation(status, lines);
    } else if (status === 101 && this.#maySwitch && this.#namesProtocol(lines)) {
      this.#state = 'over';
      this.#sink.onSwitch(lines, Buffer.from(bytes.subarray(next)));
      return bytes.length;
    } else throw new InstanceError('UND_ERR_SOCKET', `a response ${status} that was not asked for`);
    return next;
  }

  #namesProtocol(lines: string[]): boolean {
    return upgradePattern.test(this.#connection) && (headerIn(lines, 'upgrade') ?? '') !== '';
  }

  #readFraming(isNewest: boolean, lines: string[]): void {
    let length = -1;
    let encoding = '';
    let connection = '';
    this.keepAliveS = null;
    for (let i = 0; i < lines.length; i += 2) {
      const value = lines[i + 1]!;
      switch (lines[i]) {
        case 'content-length':
          if (length !== -1 || !lengthPattern.test(value)) throw refusal('its length');
          length = Number(value);
          break;
        case 'transfer-encoding':
          if (value === '') throw refusal('its encoding');
          encoding = encoding === '' ? value : `${encoding},${value}`;
          break;
        case 'connection':
          connection = connection === '' ? value : `${connection},${value}`;
          break;
        case 'keep-alive': {
          const hint = /timeout=(\d+)/.exec(value);
          if (hint) this.keepAliveS = Number(hint[1]);
        }
      }
    }
    if (length !== -1 && encoding !== '') throw refusal('a length and an encoding');
    this.keepsAlive =
      connection === '' ? isNewest : !closePattern.test(connection) && (isNewest || keepAlivePattern.test(connection));
    // HTTP/1.0 has no encodings: another reader may know the end of such a body, or not (RFC 9112, 6.1).
    if (encoding !== '' && !isNewest) this.keepsAlive = false;
    this.#length = length;
    this.#encoding = encoding;
    this.#connection = connection;
  }

  /** Where the body of a response ends follows from its head (RFC 9112, 6.3). */
  #begin(status: number, lines: string[]): void {
    const length = this.#length;
    const encoding = this.#encoding;
    const isChunked = chunkedPattern.test(encoding);
    const isBodyless = this.#isHead || status === 204 || status === 304;
    // An instance may send a body all the same, which would be read as the next response.
    if (isBodyless && !this.#isHead && (length > 0 || encoding !== '')) this.keepsAlive = false;
    if (!isBodyless && !isChunked && length === -1) this.keepsAlive = false;
    this.#left = Math.max(0, length);
    this.#state = isChunked ? 'chunk size' : length === -1 ? 'rest' : 'length';
    this.#sink.onHead(status, lines);
    if (isBodyless || length === 0) this.#finish([]);
  }

  #readBody(bytes: Buffer, at: number): number {
    const to = Math.min(bytes.length, at + this.#left);
    this.#left -= to - at;
    this.#sink.onData(bytes.subarray(at, to));
    if (this.#left > 0) return to;
    if (this.#state === 'chunk') this.#state = 'chunk end';
    else if (this.#state === 'length') this.#finish([]);
    return to;
  }

  #readChunkSize(bytes: Buffer, at: number): number {
    const end = this.#find(lineEnd, bytes, at);
    if (end === -1) return -1;
    const parts = chunkSizePattern.exec(bytes.toString('latin1', at, end));
    if (!parts) throw refusal('the size of a chunk');
    this.#left = Number.parseInt(parts[1]!, 16);
    this.#state = this.#left === 0 ? 'trailers' : 'chunk';
    return end + 2;
  }

  #readTrailers(bytes: Buffer, at: number): number {
    if (bytes.length - at < 2) return -1;
    if (bytes[at] === 13 && bytes[at + 1] === 10) {
      this.#finish([]);
      return at + 2;
    }
    const end = this.#find(emptyLine, bytes, at);
    if (end === -1) return -1;
    const text = bytes.toString('latin1', at, end + 2);
    if (!linesPattern.test(text)) throw refusal('its trailers');
    this.#finish(linesOf(text, 0));
    return end + 4;
  }

  #finish(trailers: string[]): void {
    if (this.#state === 'over') return; // it was stopped meanwhile
    this.#state = 'over';
    this.#sink.onEnd(trailers);
  }
}

/** Of a text that the patterns above accept. */
function linesOf(text: string, from: number): string[] {
  const lines: string[] = [];
  for (let at = from; at < text.length; ) {
    const colon = text.indexOf(':', at);
    const end = text.indexOf('\r\n', colon);
    lines.push(text.slice(at, colon).toLowerCase(), trimmed(text, colon + 1, end));
    at = end + 2;
  }
  return lines;
}

const isBlank = (code: number): boolean => code === 32 || code === 9;

function trimmed(text: string, start: number, stop: number): string {
  let [from, to] = [start, stop];
  while (from < to && isBlank(text.charCodeAt(from))) from++;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}
