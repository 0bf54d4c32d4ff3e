// Which headers pass the proxy: of a request to the instance, and of a response to the visitor. Hop-by-hop headers end
// here (RFC 9110, 7.6.1), and so does what a client claims about who forwarded its request. No I/O.
import { bucketOfCookies } from '../balance.ts';

export interface RequestHead {
  /** Names and values in turn as the instance gets them, with Host and Content-Length, without hop-by-hop headers. */
  headers: string[];
  /** Value of the last Host header. */
  host: string;
  hostCount: number;
  hasBody: boolean;
  chunked: boolean;
  /** Transfer-Encoding is something else than `chunked`. */
  unsupportedEncoding: boolean;
  /** From the visitor's cookie; -1 without one. */
  bucket: number;
  /** The key into the route table, and the path with its query: `readRequest` fills them in. */
  hostName: string;
  path: string;
}

/** One pass over the header lines as they came. */
export function readHead(raw: readonly string[]): RequestHead {
  const headers: string[] = [];
  const head: RequestHead = {
    headers,
    host: '',
    hostCount: 0,
    hasBody: false,
    chunked: false,
    unsupportedEncoding: false,
    bucket: -1,
    hostName: '',
    path: '',
  };
  let connection = '';
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!;
    const value = raw[i + 1]!;
    switch (name.toLowerCase()) {
      case 'host':
        head.hostCount++;
        head.host = value;
        break;
      case 'content-length':
        if (value !== '0') head.hasBody = true;
        break;
      case 'transfer-encoding':
        head.hasBody = true;
        head.chunked = true;
        if (value.toLowerCase() !== 'chunked') head.unsupportedEncoding = true;
        continue;
      case 'cookie':
        if (head.bucket === -1) head.bucket = bucketOfCookies(value);
        break;
      case 'connection':
        connection = connection === '' ? value : `${connection},${value}`;
        continue;
      case 'keep-alive':
      case 'proxy-connection':
      case 'proxy-authorization':
      case 'proxy':
      case 'te':
      case 'trailer':
      case 'upgrade':
      case 'http2-settings':
      case 'expect':
      case 'forwarded':
      case 'x-real-ip':
        continue;
      default:
        if (isForwarded(name) || (name.includes('_') && isTwin(name))) continue;
    }
    headers.push(name, value);
  }
  if (namesHeaders(connection)) removeNamed(headers, connection);
  return head;
}

/** Headers that the proxy sets or removes. Many servers cannot tell `X_Forwarded_For` from `X-Forwarded-For`. */
const ours = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'proxy-connection', 'te', 'trailer'],
  ...['proxy-authorization', 'upgrade', 'http2-settings', 'expect', 'x-real-ip'],
]);

function isTwin(name: string): boolean {
  const plain = name.replaceAll('_', '-').toLowerCase();
  return ours.has(plain) || isForwarded(plain);
}

/** X-Forwarded-For, -Host, -Proto and all others of that family. */
const isForwarded = (name: string): boolean =>
  name.length > 12 && name.charCodeAt(11) === 45 /* - */ && name.slice(0, 12).toLowerCase() === 'x-forwarded-';

/** Names, in lower case, and values in turn. A Trailer header stays only where trailers can follow. */
export function responseHeaders(from: readonly string[], bodyless: boolean, mayHaveTrailers: boolean): string[] {
  const headers: string[] = [];
  let connection = '';
  for (let i = 0; i < from.length; i += 2) {
    const name = from[i]!;
    const value = from[i + 1]!;
    switch (name) {
      case 'connection':
        connection = connection === '' ? value : `${connection},${value}`;
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
        if (!mayHaveTrailers || headerIn(from, 'content-length') !== null) continue;
    }
    headers.push(name, value);
  }
  if (namesHeaders(connection)) removeNamed(headers, connection);
  return headers;
}

/** Of names, in lower case, and values in turn: the first value of this name. */
export function headerIn(lines: readonly string[], name: string): string | null {
  for (let i = 0; i < lines.length; i += 2) if (lines[i] === name) return lines[i + 1]!;
  return null;
}

export const pairsOf = (lines: readonly string[]): [string, string][] =>
  Array.from({ length: lines.length / 2 }, (_, i) => [lines[i * 2]!, lines[i * 2 + 1]!]);

const plainConnection = /^(?:keep-alive|close|upgrade)?$/i;
const namesHeaders = (connection: string): boolean => connection !== '' && !plainConnection.test(connection);

/** These say where a message ends and whom it is for, so they stay even where Connection names them. */
const kept = new Set(['host', 'content-length']);

/**
 * A Connection header makes the headers that it names hop-by-hop. Those that are so by definition are left out by the
 * readers above.
 */
function removeNamed(headers: string[], connection: string): void {
  const named = new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
  let to = 0;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase();
    if (named.has(name) && !kept.has(name)) continue;
    headers[to++] = headers[i]!;
    headers[to++] = headers[i + 1]!;
  }
  headers.length = to;
}
