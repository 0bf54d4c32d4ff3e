// Sends files and parts of files from disk, no faster than the client takes them.
import { close, fstat, open, read, type Stats } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { lendBuffer, returnBuffer } from './chunk-buffers.ts';
import type { ByteRange } from './range.ts';
import type { StoredFile } from './stored-files.ts';

/** Chunks of one response that the socket may hold while the next is read. */
const maxInFlight = 2;

const openFile = promisify(open) as unknown as (path: string, flags: string) => Promise<number>;
const statFile = promisify(fstat) as unknown as (descriptor: number) => Promise<Stats>;
const closeFile = promisify(close);

/** The bytes between two parts, or a part of the file. */
export type Piece = Buffer | ByteRange;

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
export async function sendPieces(file: StoredFile, pieces: Piece[], response: ServerResponse): Promise<void> {
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

export function piecesFromMemory(bytes: Buffer, pieces: Piece[]): Buffer[] {
  return pieces.map((piece) => (Buffer.isBuffer(piece) ? piece : bytes.subarray(piece.start, piece.end + 1)));
}
