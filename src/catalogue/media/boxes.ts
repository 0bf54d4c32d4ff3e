// Reading the box structure of MP4 files (ISO/IEC 14496-12): only what the catalogue needs, and never more of a file than
// its headers, so that a film of many gigabytes costs a few reads. Why no library: docs/decisions/mp4-boxes.md.

/** What boxes are read from: an open file, or bytes that are in memory already. */
export interface ByteSource {
  read(target: Buffer, offset: number, length: number, position: number): Promise<{ bytesRead: number }>;
}

export const inMemory = (bytes: Buffer): ByteSource => ({
  read: async (target, offset, length, position) => ({
    bytesRead: bytes.copy(target, offset, position, position + length),
  }),
});

export interface Box {
  type: string;
  /** Offset of the box in the buffer or file, header included. */
  start: number;
  /** Offset of the first byte after the header. */
  body: number;
  end: number;
}

/** A file that does not follow its format; the message can be shown to people. */
export class MediaFormatError extends Error {}

/** The largest `moov` or `moof` that is read into memory: about 40 hours of film. */
const LARGEST_HEADER_BYTES = 256 * 1024 * 1024;

function boxAt(header: Buffer, start: number, available: number, limit: number): Box {
  if (available < 8) throw new MediaFormatError(`a box at ${start} is cut off`);
  let size = header.readUInt32BE(0);
  let headerSize = 8;
  if (size === 1) {
    if (available < 16) throw new MediaFormatError(`a box at ${start} is cut off`);
    size = Number(header.readBigUInt64BE(8));
    headerSize = 16;
  } else if (size === 0) {
    size = limit - start;
  }
  const end = start + size;
  if (size < headerSize || end > limit) throw new MediaFormatError(`a box at ${start} runs past the end`);
  return { type: header.toString('latin1', 4, 8), start, body: start + headerSize, end };
}

export function childrenOf(buffer: Buffer, from: number, to: number): Box[] {
  const boxes: Box[] = [];
  for (let at = from; at < to; ) {
    const box = boxAt(buffer.subarray(at), at, to - at, to);
    boxes.push(box);
    at = box.end;
  }
  return boxes;
}

/** The first box down a path of types, such as `child(buffer, trak, 'mdia', 'minf', 'stbl')`. */
export function child(buffer: Buffer, parent: Box, ...path: string[]): Box | undefined {
  let box: Box | undefined = parent;
  for (const type of path) {
    if (box === undefined) return undefined;
    box = childrenOf(buffer, box.body, box.end).find((each) => each.type === type);
  }
  return box;
}

export function requireChild(buffer: Buffer, parent: Box, ...path: string[]): Box {
  const box = child(buffer, parent, ...path);
  if (box === undefined) throw new MediaFormatError(`${path.join('/')} is missing in ${parent.type}`);
  return box;
}

/** The outermost boxes of a file, read header by header. */
export async function topLevelBoxes(file: ByteSource, size: number): Promise<Box[]> {
  const boxes: Box[] = [];
  const header = Buffer.alloc(16);
  for (let at = 0; at < size; ) {
    const { bytesRead } = await file.read(header, 0, 16, at);
    const box = boxAt(header, at, bytesRead, size);
    boxes.push(box);
    at = box.end;
  }
  return boxes;
}

/** The whole of one box; offsets of boxes read from it count from its own start. */
export async function readBox(file: ByteSource, box: Box): Promise<{ buffer: Buffer; box: Box }> {
  const size = box.end - box.start;
  if (size > LARGEST_HEADER_BYTES) throw new MediaFormatError(`${box.type} is ${size} bytes long`);
  const buffer = Buffer.alloc(size);
  const { bytesRead } = await file.read(buffer, 0, size, box.start);
  if (bytesRead < size) throw new MediaFormatError(`${box.type} is cut off`);
  return { buffer, box: { type: box.type, start: 0, body: box.body - box.start, end: size } };
}
