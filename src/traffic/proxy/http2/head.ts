// The head of an HTTP/2 request, told as HTTP/1.1 would tell it, so that everything behind reads one kind of head. nghttp2
// refuses most of what is wrong before it comes here; what could be read in two ways by an instance is looked at again.

export interface Http2Head {
  method: string;
  path: string;
  /** As of HTTP/1.1: with Host, one Cookie line, and chunked where a body of unknown length follows. */
  rawHeaders: string[];
  expectsContinue: boolean;
  bytes: number;
}

const token = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const badValue = /[^\t\x20-\x7e\x80-\xff]|^[\t ]|[\t ]$/;
const badPath = /[^\x21-\x7e]/;
const authority = /^[A-Za-z0-9_.:[\]-]+$/;
/** RFC 9113, 8.2.2: a message that has one of them is malformed. */
const ofConnection = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']);

/** Null: it is malformed. */
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
    if (!token.test(name) || ofConnection.has(name)) return null;
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
  // A cookie may come in crumbs, which an instance must see as one (RFC 9113, 8.2.3).
  if (cookies.length > 0) head.rawHeaders.push('cookie', cookies.join('; '));
  if (!endsHere && !hasLength) head.rawHeaders.push('transfer-encoding', 'chunked');
  return head;
}
