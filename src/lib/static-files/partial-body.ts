// The body of a 206: one part of a file as it is, several as multipart/byteranges (RFC 9110, 14.6).
import { randomBytes } from 'node:crypto';
import type { ByteRange } from './range.ts';
import type { Piece } from './send.ts';

interface PartialBody {
  headers: string[];
  pieces: Piece[];
}

const contentRange = (part: ByteRange, size: number) => `bytes ${part.start}-${part.end}/${size}`;
const lengthOf = (piece: Piece) => (Buffer.isBuffer(piece) ? piece.length : piece.end - piece.start + 1);

export function partialBody({ type, size }: { type: string; size: number }, parts: ByteRange[]): PartialBody {
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
