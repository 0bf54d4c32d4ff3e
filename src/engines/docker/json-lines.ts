// A stream of JSON objects, one on each line, as Docker sends the progress of a pull and its events.
import type { Readable } from 'node:stream';
import { EngineError } from '../engine.ts';

export async function* jsonLines<T>(stream: Readable): AsyncGenerator<T> {
  let rest = '';
  for await (const chunk of stream.setEncoding('utf8')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    yield* lines.filter((line) => line.trim() !== '').map((line) => parseLine<T>(line));
  }
  if (rest.trim() !== '') yield parseLine(rest);
}

function parseLine<T>(line: string): T {
  try {
    return JSON.parse(line) as T;
  } catch (error) {
    throw new EngineError('unavailable', 'Docker broke off in the middle of a line', error);
  }
}
