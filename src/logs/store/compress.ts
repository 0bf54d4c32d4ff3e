// A segment as it is stored: its lines, compressed by zstd. In front of them may be a frame of the kind that zstd skips,
// with a filter (text-filter.ts) that tells without decompressing that a text is not in it.
import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompressSync } from 'node:zlib';
import { filterText } from './text-filter.ts';

const params = { [constants.ZSTD_c_compressionLevel]: 1 };
const filterMagic = 0x184d2a51;
const headLength = 8;
/** Of its own 16 KiB at a time, zlib would take much longer. */
const chunkSize = 128 * 1024;

/** Compresses in a thread of its own; to make a filter takes longer, and this thread. */
export async function compress(raw: Buffer, withFilter = false): Promise<Buffer> {
  const compressing = promisify(zstdCompress)(raw, { params, chunkSize });
  if (!withFilter) return compressing;
  const filter = filterText(raw);
  return Buffer.concat([headOf(filter), filter, await compressing]);
}

function headOf(filter: Uint8Array): Buffer {
  const head = Buffer.alloc(headLength);
  head.writeUInt32LE(filterMagic, 0);
  head.writeUInt32LE(filter.length, 4);
  return head;
}

/** null: it has none. */
export function filterOf(bytes: Buffer): Buffer | null {
  const length = filterLength(bytes);
  return length === null ? null : bytes.subarray(headLength, headLength + length);
}

function filterLength(bytes: Uint8Array): number | null {
  if (bytes.length < headLength) return null;
  const head = new DataView(bytes.buffer, bytes.byteOffset, headLength);
  return head.getUint32(0, true) === filterMagic ? head.getUint32(4, true) : null;
}

/** `expectedBytes`: where that many come, it is quicker. */
export function decompress(bytes: Uint8Array, expectedBytes = chunkSize): Buffer {
  // The filter is cut off here: Node 24 never comes to an end with a frame that zstd skips.
  const filter = filterLength(bytes);
  const lines = filter === null ? bytes : bytes.subarray(headLength + filter);
  return zstdDecompressSync(lines, { chunkSize: expectedBytes + 64 });
}
