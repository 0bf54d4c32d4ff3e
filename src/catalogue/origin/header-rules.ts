// The headers that every server of a catalogue sends, by path. The built-in origin follows these rules, the printed rules
// for nginx and Caddy say the same, and push stores them with each object.
type CacheClass = 'health' | 'document' | 'media';

export const cacheControl: Record<CacheClass | 'error', string> = {
  health: 'no-store',
  document: 'public, max-age=60, stale-while-revalidate=300',
  media: 'public, max-age=31536000, immutable',
  error: 'no-store',
};

const types: Record<string, string> = {
  json: 'application/json',
  txt: 'text/plain; charset=utf-8',
  m3u8: 'application/vnd.apple.mpegurl',
  mp4: 'video/mp4',
  m4s: 'video/mp4',
  jpg: 'image/jpeg',
  vtt: 'text/vtt; charset=utf-8',
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  gz: 'application/gzip',
  br: 'application/octet-stream',
};

/** By the path in the site, without a leading slash. */
export function classOf(path: string): CacheClass {
  if (path === 'health.txt') return 'health';
  if (path.startsWith('media/') && !/^media\/SHA256SUMS(\.br|\.gz)?$/.test(path)) return 'media';
  return 'document';
}

export function typeOf(path: string): string {
  if (path === 'media/SHA256SUMS') return types.txt!;
  return types[path.slice(path.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
}

export const allowedMethods = 'GET, HEAD, OPTIONS';

/** On every response, errors included. */
export const commonHeaders: [name: string, value: string][] = [
  ['Access-Control-Allow-Origin', '*'],
  ['Access-Control-Expose-Headers', 'Accept-Ranges, Content-Encoding, Content-Length, Content-Range, ETag'],
  ['X-Content-Type-Options', 'nosniff'],
];

/** On the response to OPTIONS. */
export const preflightHeaders: [name: string, value: string][] = [
  ['Allow', allowedMethods],
  ['Access-Control-Allow-Methods', allowedMethods],
  ['Access-Control-Allow-Headers', 'Range, If-Match, If-None-Match, If-Modified-Since, If-Range, If-Unmodified-Since'],
  ['Access-Control-Max-Age', '86400'],
];
