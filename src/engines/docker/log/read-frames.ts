// Reads a container's log as the API sends it: frames with the number of a stream, a length, and text that starts with a
// timestamp.
import type { LogLine } from '../../engine.ts';
import { headerLength } from './frame-lines.ts';

/** Docker splits a line longer than 16 KiB into several frames, each with a timestamp; only the last ends the line. */
export function readLogFrames(data: Buffer): LogLine[] {
  const lines: LogLine[] = [];
  const open: Partial<Record<LogLine['stream'], LogLine>> = {};
  for (let at = 0; at + headerLength <= data.length; ) {
    const stream = data[at] === 2 ? 'stderr' : 'stdout';
    const end = at + headerLength + data.readUInt32BE(at + 4);
    const pieces = data.toString('utf8', at + headerLength, end).split(/(?<=\n)/);
    for (const piece of pieces) {
      const { time, text } = splitTime(piece);
      const begun = open[stream];
      if (begun) begun.text += text;
      const line = begun ?? { at: time, stream, text };
      if (!begun) lines.push(line);
      open[stream] = piece.endsWith('\n') ? undefined : line;
    }
    at = end;
  }
  return lines;
}

function splitTime(piece: string): { time: number; text: string } {
  const space = piece.indexOf(' ');
  const text = piece.slice(space + 1).replace(/\r?\n$/, '');
  // Docker writes nanoseconds; Date.parse is only sure to read milliseconds.
  return { time: Date.parse(piece.slice(0, Math.max(space, 0)).replace(/(\.\d{3})\d+/, '$1')), text };
}
