import { newline, streamOf, textOffset, timeLength } from '../../lib/log-lines.ts';
import { type LogLevel, readJsonLine } from '../read/json-line.ts';
import type { LoggedInstance } from '../store/segments.ts';

/** A line as it is sent elsewhere. */
export interface ShippedLine {
  instance: LoggedInstance;
  time: string;
  stream: ReturnType<typeof streamOf>;
  text: string;
  level: LogLevel | null;
}

export function* shippedLines(instance: LoggedInstance, lines: Buffer): Generator<ShippedLine> {
  for (let start = 0; start < lines.length; ) {
    const end = lines.indexOf(newline, start);
    const text = lines.toString('utf8', start + textOffset, end);
    yield {
      instance,
      time: lines.toString('latin1', start + 1, start + 1 + timeLength),
      stream: streamOf(String.fromCharCode(lines[start]!)),
      text,
      level: readJsonLine(text).level,
    };
    start = end + 1;
  }
}
