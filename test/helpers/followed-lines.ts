// What an engine gives while a log is followed.
import { textOffset } from '../../src/lib/log-lines.ts';

const newline = 0x0a;
export const textsOf = (lines: Buffer) =>
  lines
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => line.slice(textOffset));

export function endOfLine(lines: Buffer, count: number): number {
  let end = 0;
  for (let n = 0; n < count; n++) end = lines.indexOf(newline, end) + 1;
  return end;
}

/** `count`: not all, but as soon as there are so many. */
export async function collect(following: AsyncIterable<Buffer>, count = Number.POSITIVE_INFINITY): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let lines = 0;
  for await (const chunk of following) {
    chunks.push(Buffer.from(chunk));
    lines += textsOf(chunk).length;
    if (lines >= count) break;
  }
  return Buffer.concat(chunks);
}
