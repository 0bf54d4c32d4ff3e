// The headers that every server of a catalogue sends, by path: the built-in origin follows these rules, push stores
// them with each object, and `sluice catalogue headers nginx|caddy` prints them for those servers. Tests run the same
// checks against nginx, Caddy and the built-in origin.
import { maxRanges } from '../lib/request-rules.ts';

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

export const servers = ['nginx', 'caddy'] as const;
export type ServerName = (typeof servers)[number];

const extensions = ['json', 'txt', 'm3u8', 'mp4', 'm4s', 'jpg', 'vtt', 'html', 'css', 'js', 'svg', 'gz', 'br'];
/** With their compressed forms, which can be asked for by name too. */
const documents = ['/api/streams.json', '/media/SHA256SUMS', '/index.html'];
const forms = ['', '.gz', '.br'];
const sumsPaths = forms.map((form) => `/media/SHA256SUMS${form}`);
const documentPaths = documents.flatMap((path) => forms.map((form) => path + form));

/** The texts that have compressed forms, as hasForms of site-texts.ts has it. */
const textPattern = '(\\.(json|m3u8|vtt|html|css|js|svg)|/SHA256SUMS|^/)$';

const indent = (lines: string[]) => lines.map((line) => `  ${line}`);

function nginxLocation(match: string, headers: [string, string][], body: string[], always = false): string[] {
  const mode = always ? ' always' : '';
  const all = [...commonHeaders, ...headers].map(([name, value]) => `add_header ${name} "${value}"${mode};`);
  return [`location ${match} {`, ...indent([...all, ...body]), '}'];
}

function nginxRules(root: string): string[] {
  const types = extensions.map((extension) => `"${typeOf(`x.${extension}`)}" ${extension};`);
  const cache = (value: string): [string, string][] => [['Cache-Control', value]];
  const error = (name: string, status: number, text: string, extra: [string, string][] = []) =>
    nginxLocation(
      `@${name}`,
      [...cache(cacheControl.error), ...extra],
      ['types { }', `default_type "${typeOf('x.txt')}";`, `return ${status} "${text}\\n";`],
      true,
    );
  const plain = ['try_files $uri =404;'];
  const text = [`default_type "${typeOf('x.txt')}";`, ...plain];
  return [
    '# Inside server { }. Needs the module http_gzip_static; where brotli is compiled in, add: brotli_static on;',
    `root ${root};`,
    'types {',
    ...indent(types),
    '}',
    `default_type "${typeOf('x')}";`,
    'etag on;',
    'gzip off;',
    'gzip_static on;',
    'gzip_vary on;',
    `max_ranges ${maxRanges};`,
    'merge_slashes off;',
    'disable_symlinks on from=$document_root;',
    'error_page 403 404 @missing;',
    'error_page 405 @method;',
    'error_page 412 @failed;',
    'error_page 418 = @preflight;',
    'if ($request_method = OPTIONS) { return 418; }',
    'if ($request_method !~ ^(GET|HEAD)$) { return 405; }',
    ...nginxLocation('= /', cache(cacheControl.document), ['try_files /index.html =404;']),
    ...nginxLocation('= /health.txt', cache(cacheControl.health), plain),
    ...[...documentPaths.map((path) => `= ${path}`), '/gallery/'].flatMap((match) =>
      nginxLocation(match, cache(cacheControl.document), match === '= /media/SHA256SUMS' ? text : plain),
    ),
    ...nginxLocation('/media/', cache(cacheControl.media), plain),
    'location / { return 404; }',
    'location ~ /\\. { return 404; }',
    ...error('missing', 404, 'Not found'),
    ...error('method', 405, 'Method not allowed', [['Allow', allowedMethods]]),
    ...error('failed', 412, 'Precondition failed'),
    ...nginxLocation('@preflight', [...cache('no-store'), ...preflightHeaders], ['return 204;'], true),
  ];
}

function caddyRules(root: string): string[] {
  const set = (headers: [string, string][], matcher = '') =>
    headers.map(([name, value]) => `header ${matcher}${matcher && ' '}${name} "${value}"`);
  const matcher = (name: string, lines: string[]) => [`@${name} {`, ...indent(lines), '}'];
  const handle = (name: string, lines: string[]) => [`handle${name && ` @${name}`} {`, ...indent(lines), '}'];
  // Caddy evaluates conditions after it has set its headers: these requests can end with a 412, which must not be cached.
  const unguarded = ['not header If-Match *', 'not header If-Unmodified-Since *'];
  return [
    '# Inside a site block. Caddy follows symbolic links: keep none in the site that lead outside.',
    `root * ${root}`,
    ...set(commonHeaders),
    '@preflight method OPTIONS',
    '@other not method GET HEAD OPTIONS',
    '@hidden path_regexp (^|/)\\.|\\x00',
    '@health path /health.txt',
    '@if_match header If-Match *',
    ...matcher('if_unmodified', ['header If-Unmodified-Since *', 'not header If-Match *']),
    ...matcher('document', [`path / ${documentPaths.join(' ')} /gallery/*`, ...unguarded]),
    ...matcher('media', ['path /media/*', `not path ${sumsPaths.join(' ')}`, ...unguarded]),
    `@known path / /health.txt ${documentPaths.join(' ')} /media/* /gallery/*`,
    ...handle('preflight', [...set([['Cache-Control', 'no-store'], ...preflightHeaders]), 'respond 204']),
    ...handle('other', ['error 405']),
    ...handle('hidden', ['error 404']),
    ...handle('known', [
      ...set([['Cache-Control', cacheControl.health]], '@health'),
      ...set([['Cache-Control', cacheControl.error]], '@if_match'),
      ...set([['Cache-Control', cacheControl.error]], '@if_unmodified'),
      ...set([['Cache-Control', cacheControl.document]], '@document'),
      ...set([['Cache-Control', cacheControl.media]], '@media'),
      ...['json', 'txt', 'm3u8', 'm4s', 'vtt', 'js', 'gz', 'br'].flatMap((extension) => [
        `@type_${extension} path *.${extension}`,
        `header @type_${extension} Content-Type "${typeOf(`x.${extension}`)}"`,
      ]),
      `header /media/SHA256SUMS Content-Type "${typeOf('media/SHA256SUMS')}"`,
      ...matcher('text', [`path_regexp ${textPattern}`]),
      // Deferred, because the file server adds a second one to what it sends compressed.
      'header @text {',
      ...indent(['Vary Accept-Encoding', 'defer']),
      '}',
      'file_server {',
      ...indent(['precompressed br gzip', 'hide .*']),
      '}',
    ]),
    ...handle('', ['error 404']),
    'handle_errors {',
    ...indent([
      ...set(commonHeaders),
      ...set([
        ['Cache-Control', cacheControl.error],
        ['Content-Type', 'text/plain; charset=utf-8'],
      ]),
      '@method expression {http.error.status_code} == 405',
      `header @method Allow "${allowedMethods}"`,
      'respond "{http.error.status_text}\n" {http.error.status_code}',
    ]),
    '}',
  ];
}

export function serverRules(server: ServerName, root: string): string {
  const lines = server === 'nginx' ? nginxRules(root) : caddyRules(root);
  return `${lines.join('\n')}\n`;
}
