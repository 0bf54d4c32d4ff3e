// Sends files and parts of files from disk, no faster than the client takes them. Buffers are reused once the socket is
// done with them: to allocate and zero new ones of this size would cost more than the copy itself.
import { close, fstat, open, read, type Stats } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import type { ByteRange } from './range.ts';
import type { StoredFile } from './stored-files.ts';

const chunkBytes = 256 * 1024;
const maxSpareBuffers = 64;
/** Chunks of one response that the socket may hold while the next is read. */
const maxInFlight = 2;

const openFile = promisify(open) as unknown as (path: string, flags: string) => Promise<number>;
const statFile = promisify(fstat) as unknown as (descriptor: number) => Promise<Stats>;
const closeFile = promisify(close);
const spareBuffers: Buffer[] = [];

/** The bytes between two parts, or a part of the file. */
export type Piece = Buffer | ByteRange;

interface Sending {
  response: ServerResponse;
  inFlight: number;
  /** Called when the socket has taken a chunk or has closed. */
  wake: () => void;
}

function readChunk(descriptor: number, length: number, position: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const buffer = spareBuffers.pop() ?? Buffer.allocUnsafeSlow(chunkBytes);
  read(descriptor, buffer, 0, length, position, (error, bytesRead) => {
    if (error !== null) reject(error);
    else if (bytesRead === 0) reject(new Error('the file has been truncated'));
    else resolve(buffer.subarray(0, bytesRead));
  });
  return promise;
}

function writeChunk(sending: Sending, chunk: Buffer): void {
  sending.inFlight++;
  sending.response.write(chunk, () => {
    // `chunk` is a view of the whole buffer, which starts where it does.
    if (spareBuffers.length < maxSpareBuffers) spareBuffers.push(Buffer.from(chunk.buffer, 0, chunkBytes));
    sending.inFlight--;
    sending.wake();
  });
}

async function waitForRoom(sending: Sending): Promise<void> {
  while (sending.inFlight >= maxInFlight && !sending.response.destroyed)
    await new Promise<void>((resolve) => {
      sending.wake = resolve;
    });
}

async function sendPart(descriptor: number, range: ByteRange, sending: Sending): Promise<void> {
  for (let at = range.start; at <= range.end && !sending.response.destroyed; ) {
    const chunk = await readChunk(descriptor, Math.min(chunkBytes, range.end - at + 1), at);
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
  const sending: Sending = { response, inFlight: 0, wake: () => {} };
  const onClose = () => sending.wake();
  response.on('close', onClose);
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
    response.off('close', onClose);
    if (descriptor !== undefined) await closeFile(descriptor);
  }
}

export function piecesFromMemory(bytes: Buffer, pieces: Piece[]): Buffer[] {
  return pieces.map((piece) => (Buffer.isBuffer(piece) ? piece : bytes.subarray(piece.start, piece.end + 1)));
}
