// Sending files and parts of them, in step with the client: what it does not take is not read. Buffers are used again once
// the socket is done with them: fresh ones of this size would cost more, in pages to be zeroed, than the copy itself.
import { close, fstat, open, read, type Stats } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import type { ByteRange } from './range.ts';
import type { SiteFile } from './site-files.ts';

const CHUNK_BYTES = 256 * 1024;
const MOST_SPARE = 64;
/** Chunks of one answer that the socket may hold while the next is read. */
const IN_FLIGHT = 2;

const openFile = promisify(open) as unknown as (path: string, flags: string) => Promise<number>;
const statFile = promisify(fstat) as unknown as (descriptor: number) => Promise<Stats>;
const closeFile = promisify(close);
const spare: Buffer[] = [];

/** A text between parts, or a part of the file. */
export type Piece = Buffer | ByteRange;

interface Sending {
  response: ServerResponse;
  inFlight: number;
  /** Called when the socket took a chunk, or is gone. */
  wake: () => void;
}

function readChunk(descriptor: number, length: number, position: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const buffer = spare.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES);
  read(descriptor, buffer, 0, length, position, (error, bytesRead) => {
    if (error !== null) reject(error);
    else if (bytesRead === 0) reject(new Error('the file is shorter than it was'));
    else resolve(buffer.subarray(0, bytesRead));
  });
  return promise;
}

function writeChunk(sending: Sending, chunk: Buffer): void {
  sending.inFlight++;
  sending.response.write(chunk, () => {
    // `chunk` is a view of the whole buffer, which starts where it does.
    if (spare.length < MOST_SPARE) spare.push(Buffer.from(chunk.buffer, 0, CHUNK_BYTES));
    sending.inFlight--;
    sending.wake();
  });
}

async function room(sending: Sending): Promise<void> {
  while (sending.inFlight >= IN_FLIGHT && !sending.response.destroyed)
    await new Promise<void>((resolve) => {
      sending.wake = resolve;
    });
}

async function sendPart(descriptor: number, range: ByteRange, sending: Sending): Promise<void> {
  for (let at = range.start; at <= range.end && !sending.response.destroyed; ) {
    const chunk = await readChunk(descriptor, Math.min(CHUNK_BYTES, range.end - at + 1), at);
    at += chunk.length;
    writeChunk(sending, chunk);
    await room(sending);
  }
}

/** Sends the pieces and ends the response. After a failure in the middle the connection is cut, so that no client takes
 * what it got for the whole. */
export async function sendPieces(file: SiteFile, pieces: Piece[], response: ServerResponse): Promise<void> {
  const sending: Sending = { response, inFlight: 0, wake: () => {} };
  const onClose = () => sending.wake();
  response.on('close', onClose);
  let descriptor: number | undefined;
  try {
    descriptor = await openFile(file.realPath, 'r');
    if ((await statFile(descriptor)).size !== file.size) throw new Error('the file was replaced meanwhile');
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
