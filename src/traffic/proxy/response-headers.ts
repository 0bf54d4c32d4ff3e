// Which headers of an instance's response reach the visitor.
import type { IncomingHttpHeaders } from 'node:http';
import { namesHeaders, removeNamed } from './hop-by-hop.ts';

/** Names and values in turn. A Trailer header stays only where trailers can follow. */
export function responseHeaders(from: IncomingHttpHeaders, bodyless: boolean, mayHaveTrailers: boolean): string[] {
  const headers: string[] = [];
  let connection = '';
  for (const name in from) {
    const value = from[name]!;
    switch (name) {
      case 'connection':
        connection = String(value);
        continue;
      case 'content-length':
        if (bodyless) continue;
        break;
      case 'keep-alive':
      case 'proxy-connection':
      case 'proxy-authenticate':
      case 'transfer-encoding':
      case 'te':
      case 'upgrade':
        continue;
      case 'trailer':
        if (!mayHaveTrailers || from['content-length'] !== undefined) continue;
    }
    if (typeof value === 'string') headers.push(name, value);
    else for (const one of value) headers.push(name, one);
  }
  if (namesHeaders(connection)) removeNamed(headers, connection);
  return headers;
}

export const pairsOf = (lines: readonly string[]): [string, string][] =>
  Array.from({ length: lines.length / 2 }, (_, i) => [lines[i * 2]!, lines[i * 2 + 1]!]);
