// The head of a message. Of a request: which host it is for, which path, whether it is accepted at all, and which headers pass
// to the instance; of a response: which headers pass to the visitor. Hop-by-hop headers end here (RFC 9110, 7.6.1), and so does
// what a client claims about who forwarded its request. A request that two readers could understand differently is refused; the
// HTTP parser has already refused others (a length and chunks, two lengths, folded lines, bad chunks, bare line feeds). No I/O.
import { bucketOfCookies } from '../balance.ts';
import { type ErrorResponse, errorResponses } from './error-responses.ts';
import type { ProxyLimits } from './limits.ts';
import type { VisitorRequest } from './visitor-messages.ts';

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

/** The head of the request, or the response that refuses it. */
export function readRequest(
  request: VisitorRequest,
  limits: ProxyLimits,
  isUpgrade: boolean,
): RequestHead | ErrorResponse {
  const { method, url, rawHeaders, httpVersion } = request;
  if (rawHeaders.length > limits.headerCount * 2) return errorResponses.headTooLarge;
  if (method === 'TRACE' || method === 'CONNECT') return errorResponses.badMethod;
  const head = readHead(rawHeaders);
  if (head.hostCount !== 1) return errorResponses.badRequest;
  if (head.unsupportedEncoding) return errorResponses.badEncoding;
  if (head.chunked && httpVersion === '1.0') return errorResponses.badRequest;
  if (head.hasBody && isUpgrade) return errorResponses.badRequest;
  const path = pathOf(url!, head.host);
  head.hostName = hostNameOf(head.host);
  if (head.hostName === '' || path === null) return errorResponses.badRequest;
  head.path = path;
  return head;
}

const port = /^\d{1,5}$/;
const hostName = /^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])$/;

/** The host name of a Host header, lower case, without port and final dot; '' where the header has none. */
export function hostNameOf(header: string): string {
  const from = header.startsWith('[') ? header.indexOf(']') : 0;
  if (from === -1) return '';
  const colon = header.indexOf(':', from);
  if (colon !== -1 && !port.test(header.slice(colon + 1))) return '';
  const name = (colon === -1 ? header : header.slice(0, colon)).toLowerCase();
  if (!hostName.test(name)) return '';
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

const absolute = /^https?:\/\/([^/?#]*)(.*)$/i;

/**
 * The path with its query; null where the target is malformed. A target that names a host must name that of the Host
 * header: otherwise two readers of the request could take it for different hosts.
 */
export function pathOf(target: string, host: string): string | null {
  if (target.charCodeAt(0) === 47 /* / */) return target;
  const parts = absolute.exec(target);
  if (!parts || parts[1]!.toLowerCase() !== host.toLowerCase()) return null;
  const rest = parts[2]!;
  return rest.startsWith('/') ? rest : `/${rest}`;
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
