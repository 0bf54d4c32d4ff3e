// How lines of a log travel from an engine to the store and lie there: one after another as bytes, so that a program that
// prints a lot costs little. Each line is
//   kind (one letter), time (30 characters, nanoseconds, UTC), a space, the text, a newline
// The kind names the stream; a capital letter means that the text continues the line before, which was too long.

type LogStream = 'stdout' | 'stderr' | 'system';

export const kindOf = { stdout: 'o', stderr: 'e', system: 's' } as const satisfies Record<LogStream, string>;

export const streamOf = (kind: string): LogStream =>
  kind === 'o' || kind === 'O' ? 'stdout' : kind === 'e' || kind === 'E' ? 'stderr' : 'system';

export const newline = 0x0a;
export const timeLength = 30;
/** Where the text of a line begins. */
export const textOffset = 1 + timeLength + 1;
/** A longer line is stored in pieces. */
export const maxPieceBytes = 16 * 1024;

/** `nanos`: below the millisecond. */
export const timeText = (ms: number, nanos = 0): string =>
  `${new Date(ms).toISOString().slice(0, -1)}${String(nanos).padStart(6, '0')}Z`;

export const timeMs = (time: string): number => Date.parse(`${time.slice(0, 23)}Z`);

export interface TimedLine {
  time: string;
  stream: LogStream;
  text: string;
}

export function encodeLine({ time, stream, text }: TimedLine): Buffer {
  const kind = kindOf[stream];
  const bytes = Buffer.from(text.replaceAll('\n', ' '));
  if (bytes.length <= maxPieceBytes) return Buffer.from(`${kind}${time} ${bytes.toString()}\n`);
  return Buffer.concat(piecesOf(bytes, kind, time));
}

function piecesOf(bytes: Buffer, kind: string, time: string): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += maxPieceBytes) {
    const head = at === 0 ? kind : kind.toUpperCase();
    pieces.push(Buffer.from(`${head}${time} `), bytes.subarray(at, at + maxPieceBytes), Buffer.from('\n'));
  }
  return pieces;
}

export const encodeLines = (lines: readonly TimedLine[]): Buffer => Buffer.concat(lines.map(encodeLine));

interface Line {
  text: string;
}

export const textBytesOf = (lines: Line[]): number => lines.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);

/** The latest of the lines, oldest first, whose text takes no more than this. */
export function latestThatFit<L extends Line>(lines: L[], maxBytes: number): L[] {
  let bytes = 0;
  let from = lines.length;
  while (from > 0) {
    bytes += Buffer.byteLength(lines[from - 1]!.text);
    if (bytes > maxBytes) break;
    from--;
  }
  return lines.slice(from);
}
