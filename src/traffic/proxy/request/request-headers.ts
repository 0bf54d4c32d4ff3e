// The headers of a request: which ones go to the instance, and what the proxy needs to know of them. Hop-by-hop headers
// end here (RFC 9110, 7.6.1), and so does what a client claims about who forwarded its request.
import { bucketOfCookies } from '../../balance.ts';
import { namesHeaders, removeNamed } from '../hop-by-hop.ts';

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
