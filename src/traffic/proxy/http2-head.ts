// Translates the head of an HTTP/2 request to HTTP/1.1, so that all other code reads one kind of head. nghttp2 refuses
// most malformed heads earlier; whatever an instance could understand in two ways is checked again here.

export interface Http2Head {
  method: string;
  path: string;
  /** As in HTTP/1.1: with Host, one Cookie line, and chunked where a body of unknown length follows. */
  rawHeaders: string[];
  expectsContinue: boolean;
  bytes: number;
}

const token = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const badValue = /[^\t\x20-\x7e\x80-\xff]|^[\t ]|[\t ]$/;
const badPath = /[^\x21-\x7e]/;
const authority = /^[A-Za-z0-9_.:[\]-]+$/;
/** A message with one of these is malformed (RFC 9113, 8.2.2). */
const connectionHeaders = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']);

/** Null where it is malformed. */
export function readHttp2Head(raw: readonly string[], endsHere: boolean): Http2Head | null {
  const pseudo: Record<string, string> = {};
  const lines: string[] = [];
  const cookies: string[] = [];
  const head: Http2Head = { method: '', path: '', rawHeaders: [], expectsContinue: false, bytes: 0 };
  let host: string | null = null;
  let hasLength = false;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!;
    const value = raw[i + 1]!;
    head.bytes += name.length + value.length + 4;
    if (badValue.test(value)) return null;
    if (name.startsWith(':')) {
      if (name in pseudo) return null;
      pseudo[name] = value;
      continue;
    }
    if (!token.test(name) || connectionHeaders.has(name)) return null;
    if (name === 'te' && value.toLowerCase() !== 'trailers') return null;
    if (name === 'content-length') {
      if (hasLength || !/^\d{1,15}$/.test(value)) return null;
      hasLength = true;
    }
    if (name === 'expect' && value.toLowerCase() === '100-continue') head.expectsContinue = true;
    if (name === 'host') {
      if (host !== null && host !== value) return null;
      host = value;
    } else if (name === 'cookie') cookies.push(value);
    else lines.push(name, value);
  }
  const named = pseudo[':authority'] ?? host;
  if (named === null || !authority.test(named)) return null;
  if (host !== null && host.toLowerCase() !== named.toLowerCase()) return null;
  head.method = pseudo[':method'] ?? '';
  head.path = pseudo[':path'] ?? '';
  if (head.method !== 'CONNECT' && (pseudo[':scheme'] !== 'https' || head.path === '')) return null;
  if (badPath.test(head.path)) return null;
  head.rawHeaders = ['host', named, ...lines];
  // A cookie may be split over several lines, which HTTP/1.1 must have as one (RFC 9113, 8.2.3).
  if (cookies.length > 0) head.rawHeaders.push('cookie', cookies.join('; '));
  if (!endsHere && !hasLength) head.rawHeaders.push('transfer-encoding', 'chunked');
  return head;
}
