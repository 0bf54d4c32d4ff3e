// Serves the files below a folder over HTTP: stored compressed forms, conditional requests, ranges. Which headers they get
// is up to the rules; which path a request means, and what a missing file gets, is up to the caller.

import { randomBytes } from 'node:crypto';
import { close, fstat, open, read, type Stats } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import {
  acceptedEncodings,
  type ByteRange,
  type Conditions,
  type Encoding,
  evaluate,
  honoursRange,
  parseRange,
} from './request-rules.ts';
import { type FileRules, type StoredFile, StoredFiles } from './stored-files.ts';

const errorTexts = {
  400: 'Bad request\n',
  404: 'Not found\n',
  405: 'Method not allowed\n',
  412: 'Precondition failed\n',
  416: 'Range not satisfiable\n',
};

type Found = (file: StoredFile | null) => void;

export class StaticFiles {
  readonly #files: StoredFiles;
  readonly #rules: FileRules;
  readonly #inProgress = new Set<Promise<void>>();

  constructor(root: string, rules: FileRules) {
    this.#files = new StoredFiles(root, rules);
    this.#rules = rules;
  }

  /** Finds the best form of a file that the client accepts; null: there is no such file. Calls back at once if memory has it. */
  find({ headers }: IncomingMessage, path: string, found: Found): void {
    // Ranges are of the plain file: a part of a compressed form is of no use to a client.
    const isPlain = headers.range !== undefined || !this.#rules.hasCompressedForms(path);
    this.#findForm(path, isPlain ? [] : acceptedEncodings(headers['accept-encoding']), 0, found);
  }

  #findForm(path: string, encodings: Encoding[], index: number, found: Found): void {
    const form = { path, encoding: encodings[index] };
    const proceed = (file: StoredFile | null) => {
      if (file === null && index < encodings.length) this.#findForm(path, encodings, index + 1, found);
      else found(file);
    };
    const known = this.#files.recall(form);
    if (known !== undefined) proceed(known);
    else void this.#files.load(form).then(proceed);
  }

  /** Answers a GET or HEAD with a file that `find` found. */
  send(request: IncomingMessage, response: ServerResponse, file: StoredFile): void {
    const headers = request.headers as Conditions & { range?: string };
    const verdict = evaluate(headers, file);
    if (verdict === 'failed') this.sendError(request, response, 412);
    else if (verdict === 'not-modified') response.writeHead(304, file.headers).end();
    else if (headers.range !== undefined && honoursRange(headers['if-range'], file))
      this.#sendRange(request, response, file, headers.range);
    else this.#sendWhole(request, response, file);
  }

  sendError(
    { method }: IncomingMessage,
    response: ServerResponse,
    status: keyof typeof errorTexts,
    extra: string[] = [],
  ): void {
    const text = errorTexts[status];
    const about = ['Content-Type', 'text/plain; charset=utf-8', 'Content-Length', String(text.length)];
    response.writeHead(status, [...this.#rules.commonHeaders, 'Cache-Control', 'no-store', ...about, ...extra]);
    response.end(method === 'HEAD' ? undefined : text);
  }

  #sendWhole({ method }: IncomingMessage, response: ServerResponse, file: StoredFile): void {
    response.writeHead(200, file.wholeHeaders);
    if (method === 'HEAD' || file.size === 0) response.end();
    else if (file.bytes !== null) response.end(file.bytes);
    else this.#sendFromDisk(file, [{ start: 0, end: file.size - 1 }], response);
  }

  #sendRange(request: IncomingMessage, response: ServerResponse, file: StoredFile, header: string): void {
    const range = parseRange(header, file.size);
    if (range.kind === 'whole') this.#sendWhole(request, response, file);
    else if (range.kind === 'unsatisfiable')
      this.sendError(request, response, 416, ['Content-Range', `bytes */${file.size}`]);
    else {
      const body = partialBody(file, range.parts);
      response.writeHead(206, [...file.headers, ...body.headers]);
      if (request.method === 'HEAD') response.end();
      else if (file.bytes !== null) response.end(Buffer.concat(piecesFromMemory(file.bytes, body.pieces)));
      else this.#sendFromDisk(file, body.pieces, response);
    }
  }

  #sendFromDisk(file: StoredFile, pieces: Piece[], response: ServerResponse): void {
    const sending = sendPieces(file, pieces, response).finally(() => this.#inProgress.delete(sending));
    this.#inProgress.add(sending);
  }

  /** Waits for responses that are being sent from disk. */
  async close(): Promise<void> {
    await Promise.all(this.#inProgress);
  }
}

// The body of a 206: one part of a file as it is, several as multipart/byteranges (RFC 9110, 14.6).

interface PartialBody {
  headers: string[];
  pieces: Piece[];
}

const contentRange = (part: ByteRange, size: number) => `bytes ${part.start}-${part.end}/${size}`;
const lengthOf = (piece: Piece) => (Buffer.isBuffer(piece) ? piece.length : piece.end - piece.start + 1);

function partialBody({ type, size }: { type: string; size: number }, parts: ByteRange[]): PartialBody {
  const first = parts[0]!;
  if (parts.length === 1) {
    const length = String(lengthOf(first));
    const range = contentRange(first, size);
    return { headers: ['Content-Type', type, 'Content-Length', length, 'Content-Range', range], pieces: parts };
  }
  const boundary = randomBytes(12).toString('hex');
  const pieces = parts.flatMap((part): Piece[] => {
    const about = `Content-Type: ${type}\r\nContent-Range: ${contentRange(part, size)}`;
    return [Buffer.from(`\r\n--${boundary}\r\n${about}\r\n\r\n`), part];
  });
  pieces.push(Buffer.from(`\r\n--${boundary}--\r\n`));
  const length = pieces.reduce((sum, piece) => sum + lengthOf(piece), 0);
  const multipart = `multipart/byteranges; boundary=${boundary}`;
  return { headers: ['Content-Type', multipart, 'Content-Length', String(length)], pieces };
}

// Sends files and parts of files from disk, no faster than the client takes them.

/** Chunks of one response that the socket may hold while the next is read. */
const maxInFlight = 2;

const openFile = promisify(open) as unknown as (path: string, flags: string) => Promise<number>;
const statFile = promisify(fstat) as unknown as (descriptor: number) => Promise<Stats>;
const closeFile = promisify(close);

/** The bytes between two parts, or a part of the file. */
type Piece = Buffer | ByteRange;

interface Sending {
  response: ServerResponse;
  inFlight: Set<Buffer>;
  /** Called when the socket has taken a chunk or has closed. */
  wake: () => void;
}

function readChunk(descriptor: number, length: number, position: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const buffer = lendBuffer();
  read(descriptor, buffer, 0, Math.min(length, buffer.length), position, (error, bytesRead) => {
    if (error === null && bytesRead > 0) {
      resolve(buffer.subarray(0, bytesRead));
      return;
    }
    returnBuffer(buffer);
    reject(error ?? new Error('the file has been truncated'));
  });
  return promise;
}

function writeChunk(sending: Sending, chunk: Buffer): void {
  sending.inFlight.add(chunk);
  sending.response.write(chunk, () => {
    if (sending.inFlight.delete(chunk)) returnBuffer(chunk);
    sending.wake();
  });
}

/** The socket of a response that has closed is done with its chunks, whether or not it says so for each of them. */
function onClose(sending: Sending): void {
  for (const chunk of sending.inFlight) returnBuffer(chunk);
  sending.inFlight.clear();
  sending.wake();
}

async function waitForRoom(sending: Sending): Promise<void> {
  while (sending.inFlight.size >= maxInFlight && !sending.response.destroyed)
    await new Promise<void>((resolve) => {
      sending.wake = resolve;
    });
}

async function sendPart(descriptor: number, range: ByteRange, sending: Sending): Promise<void> {
  for (let at = range.start; at <= range.end && !sending.response.destroyed; ) {
    const chunk = await readChunk(descriptor, range.end - at + 1, at);
    at += chunk.length;
    writeChunk(sending, chunk);
    await waitForRoom(sending);
  }
}

/**
 * Sends the pieces and ends the response. If reading fails midway the connection is cut, so that no client mistakes what it
 * received for the whole file.
 */
async function sendPieces(file: StoredFile, pieces: Piece[], response: ServerResponse): Promise<void> {
  const sending: Sending = { response, inFlight: new Set(), wake: () => {} };
  response.once('close', () => onClose(sending));
  let descriptor: number | undefined;
  try {
    descriptor = await openFile(file.realPath, 'r');
    if ((await statFile(descriptor)).size !== file.size) throw new Error('the file has been replaced');
    for (const piece of pieces) {
      if (Buffer.isBuffer(piece)) response.write(piece);
      else await sendPart(descriptor, piece, sending);
    }
    response.end();
  } catch {
    response.destroy();
  } finally {
    if (descriptor !== undefined) await closeFile(descriptor);
  }
}

function piecesFromMemory(bytes: Buffer, pieces: Piece[]): Buffer[] {
  return pieces.map((piece) => (Buffer.isBuffer(piece) ? piece : bytes.subarray(piece.start, piece.end + 1)));
}

// The buffers that files are sent from. They are reused once the socket is done with them: to allocate and zero new ones
// of this size would cost more than the copy itself. Clients that read slowly share a limited amount of memory: while they
// keep so much waiting, every further buffer is a small one.

const largeBytes = 256 * 1024;
const smallBytes = 16 * 1024;
const maxLentBytes = 32 * 1024 * 1024;
const maxSpare = { [largeBytes]: maxLentBytes / largeBytes, [smallBytes]: 512 };

const spare: Record<number, ArrayBufferLike[]> = { [largeBytes]: [], [smallBytes]: [] };
let lentBytes = 0;

function lendBuffer(): Buffer {
  const size = lentBytes < maxLentBytes ? largeBytes : smallBytes;
  lentBytes += size;
  const reused = spare[size]!.pop();
  return reused ? Buffer.from(reused) : Buffer.allocUnsafeSlow(size);
}

/** Nothing reads or writes it any more. A view of it will do. */
function returnBuffer({ buffer }: Buffer): void {
  const size = buffer.byteLength;
  lentBytes -= size;
  if (spare[size]!.length < maxSpare[size]!) spare[size]!.push(buffer);
}
