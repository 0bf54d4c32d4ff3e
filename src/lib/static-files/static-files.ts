// Serves the files below a folder over HTTP: stored compressed forms, conditional requests, ranges. Which headers they get
// is up to the rules; which path a request means, and what a missing file gets, is up to the caller.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Conditions, evaluate, honoursRange } from './conditional.ts';
import { acceptedEncodings, type Encoding } from './encoding.ts';
import type { FileRules } from './file-rules.ts';
import { partialBody } from './partial-body.ts';
import { parseRange } from './range.ts';
import { type Piece, piecesFromMemory, sendPieces } from './send.ts';
import { type StoredFile, StoredFiles } from './stored-files.ts';

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
