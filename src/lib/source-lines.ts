// From a line of a bundle to the line of its source: a table beside each file of the bundle, made from its source map when it
// is built. A stack is read far more often than it is shown (Node does so whenever a stream is destroyed with an error), and
// taking a source map apart costs half a second; this table is used as it lies in the file.
//
// Layout, all numbers 32 bits and little-endian: how many lines and places there are; for each line of the bundle its first
// place, and one more for the end; of every place the column where it begins; its source; its line there. Then the names of the
// sources as JSON.

export interface SourceMapText {
  sources: readonly string[];
  mappings: string;
}

const digits = new Int8Array(128).fill(-1);
for (const [value, char] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].entries())
  digits[char.charCodeAt(0)] = value;

const headerBytes = 8;
const bytesEach = 4;

/** `nameOf`: a source as the table is to name it. */
export function encodeSourceLines({ sources, mappings }: SourceMapText, nameOf: (source: string) => string): Buffer {
  const firsts = [0];
  const columns: number[] = [];
  const sourceOf: number[] = [];
  const lineOf: number[] = [];
  let [column, source, line] = [0, 0, 0];
  let field = 0;
  let value = 0;
  let shift = 0;
  const endSegment = () => {
    // Of places on one line that lead to the same line of a source, the first is enough.
    const last = columns.length - 1;
    const isNew = last < firsts.at(-1)! || sourceOf[last] !== source || lineOf[last] !== line;
    if (field >= 4 && isNew) {
      columns.push(column);
      sourceOf.push(source);
      lineOf.push(line);
    }
    field = 0;
  };
  for (let i = 0; i < mappings.length; i++) {
    const char = mappings[i];
    if (char === ',' || char === ';') {
      endSegment();
      if (char === ';') {
        firsts.push(columns.length);
        column = 0;
      }
      continue;
    }
    const digit = digits[mappings.charCodeAt(i)]!;
    value += (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    const delta = value & 1 ? -(value >>> 1) : value >>> 1;
    if (field === 0) column += delta;
    else if (field === 1) source += delta;
    else if (field === 2) line += delta;
    field++;
    value = 0;
    shift = 0;
  }
  endSegment();
  firsts.push(columns.length);
  const numbers = Int32Array.from([
    firsts.length - 1,
    columns.length,
    ...firsts,
    ...[columns, sourceOf, lineOf].flat(),
  ]);
  return Buffer.concat([Buffer.from(numbers.buffer), Buffer.from(JSON.stringify(sources.map(nameOf)))]);
}

export class SourceLines {
  readonly #bytes: Buffer;
  readonly #lines: number;
  readonly #places: number;
  readonly #sources: readonly string[];

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#lines = bytes.readInt32LE(0);
    this.#places = bytes.readInt32LE(bytesEach);
    this.#sources = JSON.parse(bytes.toString('utf8', this.#offset(4, 0)));
  }

  /** Of what lies behind the header: first places (0), columns (1), sources (2) and lines (3) of the places, names (4). */
  #offset(array: number, index: number): number {
    const before = array === 0 ? 0 : this.#lines + 1 + (array - 1) * this.#places;
    return headerBytes + bytesEach * (before + index);
  }

  #at(array: number, index: number): number {
    return this.#bytes.readInt32LE(this.#offset(array, index));
  }

  /** `src/control.ts:3` of a place in the bundle, counted as stacks do, from 1. */
  find(line: number, column: number): string | null {
    if (line < 1 || line > this.#lines) return null;
    const [first, end] = [this.#at(0, line - 1), this.#at(0, line)];
    if (first === end) return null;
    let found = first;
    while (found + 1 < end && this.#at(1, found + 1) < column) found++;
    return `${this.#sources[this.#at(2, found)]}:${this.#at(3, found) + 1}`;
  }
}
