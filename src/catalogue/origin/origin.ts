// The built-in origin: a site of plain files over HTTP, by the rules of header-rules.ts. It is a request handler and nothing
// more, so that the service can mount it on its own server.
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isText } from '../compress.ts';
import { type Conditions, evaluate, rangeCounts } from './conditional.ts';
import { acceptedEncodings, type Encoding } from './encoding.ts';
import { allowedMethods, cacheControl, commonHeaders, preflightHeaders } from './header-rules.ts';
import { type ByteRange, parseRange } from './range.ts';
import { sitePath } from './request-path.ts';
import { type Piece, piecesFromMemory, sendPieces } from './send.ts';
import { type SiteFile, SiteFiles } from './site-files.ts';

export interface Origin {
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Answers to large files that are under way are finished first. */
  close(): Promise<void>;
}

const errorTexts: Record<number, string> = {
  404: 'Not found\n',
  405: 'Method not allowed\n',
  412: 'Precondition failed\n',
  416: 'Range not satisfiable\n',
};
const common = commonHeaders.flat();

function sendError(response: ServerResponse, isHead: boolean, status: number, extra: string[] = []): void {
  const text = errorTexts[status] ?? '';
  const about = ['Content-Type', 'text/plain; charset=utf-8', 'Content-Length', String(text.length)];
  response.writeHead(status, [...common, 'Cache-Control', cacheControl.error, ...about, ...extra]);
  response.end(isHead ? undefined : text);
}

function sendOptions(response: ServerResponse): void {
  response.writeHead(204, [...common, 'Cache-Control', 'no-store', ...preflightHeaders.flat()]);
  response.end();
}

interface Body {
  headers: string[];
  pieces: Piece[];
}

const contentRange = (part: ByteRange, size: number) => `bytes ${part.start}-${part.end}/${size}`;

function partBody(file: SiteFile, parts: ByteRange[]): Body {
  const first = parts[0]!;
  if (parts.length === 1) {
    const length = String(first.end - first.start + 1);
    const range = contentRange(first, file.size);
    return { headers: ['Content-Type', file.type, 'Content-Length', length, 'Content-Range', range], pieces: parts };
  }
  const boundary = randomBytes(12).toString('hex');
  const pieces = parts.flatMap((part): Piece[] => {
    const about = `Content-Type: ${file.type}\r\nContent-Range: ${contentRange(part, file.size)}`;
    return [Buffer.from(`\r\n--${boundary}\r\n${about}\r\n\r\n`), part];
  });
  pieces.push(Buffer.from(`\r\n--${boundary}--\r\n`));
  const length = pieces.reduce(
    (sum, piece) => sum + (Buffer.isBuffer(piece) ? piece.length : piece.end - piece.start + 1),
    0,
  );
  const type = `multipart/byteranges; boundary=${boundary}`;
  return { headers: ['Content-Type', type, 'Content-Length', String(length)], pieces };
}

class SiteOrigin implements Origin {
  #files: SiteFiles;
  #underWay = new Set<Promise<void>>();

  constructor(root: string) {
    this.#files = new SiteFiles(root);
  }

  // Bound, so that it can be handed to createServer as it is.
  handle = (request: IncomingMessage, response: ServerResponse): void => {
    const { method } = request;
    // A body that nobody asked for is thrown away, so that the connection can be used again.
    if (method !== 'GET' && method !== 'HEAD') request.resume();
    const path = sitePath(request.url);
    if (method === 'OPTIONS') sendOptions(response);
    else if (method !== 'GET' && method !== 'HEAD') sendError(response, false, 405, ['Allow', allowedMethods]);
    else if (path === null) sendError(response, method === 'HEAD', 404);
    else this.#answer(request, response, path, this.#encodingsFor(request, path));
  };

  #encodingsFor({ headers }: IncomingMessage, path: string): Encoding[] {
    // Parts are cut from the plain file; a range of a compressed form would help nobody.
    return headers.range === undefined && isText(path) ? acceptedEncodings(headers['accept-encoding']) : [];
  }

  /** Tries the forms the client takes, best first, and the plain file last. */
  #answer(request: IncomingMessage, response: ServerResponse, path: string, encodings: Encoding[], turn = 0): void {
    const form = { path, encoding: encodings[turn] };
    const proceed = (file: SiteFile | null) => {
      if (file !== null) this.#send(request, response, file);
      else if (turn < encodings.length) this.#answer(request, response, path, encodings, turn + 1);
      else sendError(response, request.method === 'HEAD', 404);
    };
    // At once where memory knows the file.
    const known = this.#files.recall(form);
    if (known !== undefined) proceed(known);
    else this.#files.load(form).then(proceed, () => response.destroy());
  }

  #send(request: IncomingMessage, response: ServerResponse, file: SiteFile): void {
    const isHead = request.method === 'HEAD';
    const headers = request.headers as Conditions & { range?: string };
    const verdict = evaluate(headers, file);
    if (verdict === 'failed') sendError(response, isHead, 412);
    else if (verdict === 'not-modified') response.writeHead(304, file.headers).end();
    else if (headers.range !== undefined && rangeCounts(headers['if-range'], file))
      this.#sendRange(response, file, headers.range, isHead);
    else this.#sendWhole(response, file, isHead);
  }

  #sendWhole(response: ServerResponse, file: SiteFile, isHead: boolean): void {
    response.writeHead(200, file.wholeHeaders);
    if (isHead || file.size === 0) response.end();
    else if (file.bytes !== null) response.end(file.bytes);
    else this.#sendFromDisk(file, [{ start: 0, end: file.size - 1 }], response);
  }

  #sendRange(response: ServerResponse, file: SiteFile, header: string, isHead: boolean): void {
    const range = parseRange(header, file.size);
    if (range.kind === 'whole') this.#sendWhole(response, file, isHead);
    else if (range.kind === 'unsatisfiable')
      sendError(response, isHead, 416, ['Content-Range', `bytes */${file.size}`]);
    else {
      const body = partBody(file, range.parts);
      response.writeHead(206, [...file.headers, ...body.headers]);
      if (isHead) response.end();
      else if (file.bytes !== null) response.end(Buffer.concat(piecesFromMemory(file.bytes, body.pieces)));
      else this.#sendFromDisk(file, body.pieces, response);
    }
  }

  #sendFromDisk(file: SiteFile, pieces: Piece[], response: ServerResponse): void {
    const sending = sendPieces(file, pieces, response).finally(() => this.#underWay.delete(sending));
    this.#underWay.add(sending);
  }

  async close(): Promise<void> {
    await Promise.all(this.#underWay);
  }
}

export function createOrigin(root: string): Origin {
  return new SiteOrigin(root);
}
