// A segment as it is stored: its lines, compressed by zstd. In front of them may be a frame of the kind that zstd skips,
// with a filter that shows, without decompressing, that a text is not in the segment.
import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompressSync } from 'node:zlib';
import { newline, textOffset } from '../../lib/log-lines.ts';

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

// The filter is a Bloom filter with one bit for every five characters in a row, ignoring case. A text that is searched for
// has several such sequences, and one missing bit shows that the text is absent. Characters beyond ASCII are left out,
// because their capitals are other bytes.

const gramLength = 5;
const gramMask = 2 ** (6 * gramLength) - 1;
const outside = 0xff;
const leastBytes = 64;
/** A filter with more of its bits set is not made smaller. */
const dense = 1 / 3;

/** Six bits for each character: letters and digits are told apart, others mostly. */
const codes = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0x80) return outside;
  const letter = String.fromCharCode(byte).toLowerCase();
  if (/[a-z]/.test(letter)) return letter.charCodeAt(0) - 0x61;
  if (/[0-9]/.test(letter)) return 26 + byte - 0x30;
  return 36 + (byte % 28);
});

function hash(gram: number): number {
  const mixed = Math.imul(gram, 0x9e3779b1);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}

/** Its length is a power of two: at most an eighth of that of the lines, and much less where they repeat each other. */
export function filterText(raw: Buffer): Uint8Array {
  const bits = Math.max(leastBytes * 8, 2 ** Math.ceil(Math.log2(raw.length / 2)));
  const filter = new Uint8Array(bits / 8);
  setBits(filter, raw);
  return halved(filter);
}

function setBits(filter: Uint8Array, raw: Buffer): void {
  const mask = filter.length * 8 - 1;
  for (let at = textOffset, gram = 0, length = 0; at < raw.length; at++) {
    const byte = raw[at]!;
    if (byte === newline) {
      at += textOffset;
      length = 0;
      continue;
    }
    const code = codes[byte]!;
    if (code === outside) {
      length = 0;
      continue;
    }
    gram = ((gram << 6) | code) & gramMask;
    if (++length < gramLength) continue;
    const bit = hash(gram) & mask;
    filter[bit >>> 3]! |= 1 << (bit & 7);
  }
}

function halved(filter: Uint8Array): Uint8Array {
  if (filter.length <= leastBytes) return filter;
  const half = filter.length / 2;
  const smaller = filter.slice(0, half);
  for (let at = 0; at < half; at++) smaller[at]! |= filter[half + at]!;
  return densityOf(smaller) > dense ? filter : halved(smaller);
}

function densityOf(filter: Uint8Array): number {
  let set = 0;
  for (const byte of filter) for (let rest = byte; rest > 0; rest &= rest - 1) set++;
  return set / (filter.length * 8);
}

/** The bits of a text that is searched for; none where it is too short to tell. */
export function bitsOf(text: string): number[] {
  const bits: number[] = [];
  let [gram, length] = [0, 0];
  for (const byte of Buffer.from(text)) {
    const code = codes[byte]!;
    length = code === outside ? 0 : length + 1;
    gram = ((gram << 6) | code) & gramMask;
    if (length >= gramLength) bits.push(hash(gram));
  }
  return bits;
}

export function mayContain(filter: Uint8Array, bits: readonly number[]): boolean {
  const mask = filter.length * 8 - 1;
  return bits.every((bit) => (filter[(bit & mask) >>> 3]! & (1 << (bit & 7))) !== 0);
}
