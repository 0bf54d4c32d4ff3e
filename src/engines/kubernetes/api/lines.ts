import type { Readable } from 'node:stream';

/** The lines of a stream, without their ends. Throws where one is longer than `maxBytes`. */
export async function* linesOf(stream: Readable, maxBytes: number): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      yield Buffer.concat([...parts, chunk.subarray(from, end)]);
      parts = [];
      length = 0;
      from = end + 1;
    }
    length += chunk.length - from;
    if (length > maxBytes) throw new Error(`a line is longer than ${maxBytes} bytes`);
    if (from < chunk.length) parts.push(chunk.subarray(from));
  }
  if (length > 0) yield Buffer.concat(parts);
}
