// The printed rules for nginx and Caddy against the built-in origin, header by header, over a table of requests. Where one
// of them cannot do the same, the difference is listed here, and docs/catalogue.md tells it.
import assert from 'node:assert/strict';
import { type IncomingHttpHeaders, request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { onPath } from '../../scripts/packages.ts';
import { collectCleanup, makeFolder } from './fixture.ts';
import { film, makeSite } from './plain-site.ts';
import { startCaddy, startNginx, startOrigin } from './servers.ts';

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
}

function ask(base: string, path: string, headers: Record<string, string>, method = 'GET'): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const asked = request(base + path, { method, headers, agent: false }, (answer) => {
    answer.resume().on('end', () => resolve({ status: answer.statusCode!, headers: answer.headers }));
  });
  asked.on('error', reject).end();
  return promise;
}

const compared = [
  'cache-control',
  'content-type',
  'content-encoding',
  'content-range',
  'vary',
  'allow',
  'accept-ranges',
  'x-content-type-options',
  'access-control-allow-origin',
  'access-control-expose-headers',
  'access-control-allow-methods',
  'access-control-allow-headers',
  'access-control-max-age',
] as const;

type Row = [what: string, path: string, headers?: Record<string, string>, method?: string];

const paths = [
  '/health.txt',
  '/api/streams.json',
  '/api/streams.json.gz',
  '/api/streams.json.br',
  '/media/SHA256SUMS',
  '/media/SHA256SUMS.gz',
  '/media/SHA256SUMS.br',
  '/',
  '/index.html',
  '/gallery/gallery.js',
  '/media/a/film.mp4',
  '/media/a/hls/main.m3u8',
  '/media/a/hls/00001.m4s',
  '/media/a/thumbs.vtt',
  '/media/a/poster.jpg',
  '/media/none.mp4',
  '/nowhere',
];

const rows: Row[] = [
  ...paths.map((path): Row => ['plain', path]),
  ...paths.map((path): Row => ['gzip', path, { 'accept-encoding': 'gzip' }]),
  ...paths.map((path): Row => ['HEAD', path, {}, 'HEAD']),
  ['preflight', '/media/a/film.mp4', { origin: 'https://x', 'access-control-request-method': 'GET' }, 'OPTIONS'],
  ['POST', '/api/streams.json', {}, 'POST'],
  ['DELETE', '/media/a/film.mp4', {}, 'DELETE'],
  ['range', '/media/a/film.mp4', { range: 'bytes=10-19' }],
  ['range past the end', '/media/a/film.mp4', { range: `bytes=${film.length}-` }],
  ['If-None-Match', '/media/a/film.mp4', { 'if-none-match': '*' }],
  ['If-None-Match', '/api/streams.json', { 'if-none-match': '*' }],
  ['If-Match fails', '/media/a/film.mp4', { 'if-match': '"other"' }],
  ['If-Match fails', '/api/streams.json', { 'if-match': '"other"' }],
  ['If-Match passes', '/media/a/film.mp4', { 'if-match': '*' }],
  ['If-Unmodified-Since fails', '/media/a/film.mp4', { 'if-unmodified-since': 'Mon, 01 Jan 2001 00:00:00 GMT' }],
];

/** What a server cannot do; `what path header`, as below. */
const known: Record<'nginx' | 'caddy', RegExp[]> = {
  nginx: [
    // It says that ranges are possible only where it sends a whole plain file.
    /^(gzip|range|If-None-Match) .* accept-ranges: bytes here, none there/,
    // It evaluates a range after it has set its headers.
    /^range past the end .* (cache-control: no-store here|content-type: .* text\/html there)/,
    /^If-Match fails \/api\/streams\.json vary: none here/,
  ],
  caddy: [
    // It takes from a 304 what it need not have.
    /^If-None-Match .* (accept-ranges: bytes|last-modified: true) here/,
    // Its errors in evaluating a range or a condition keep the headers of the file; the cache rule of conditions is ours.
    /^range past the end .* (cache-control: no-store here|etag: false|last-modified: false)/,
    /^If-(Match|Unmodified-Since) fails .* (content-type|vary|etag|last-modified): /,
    /^If-Match passes \S+ cache-control: public, max-age=31536000, immutable here, no-store there/,
  ],
};

const servers = { nginx: startNginx, caddy: startCaddy };

describe('the same headers', () => {
  const cleanup = collectCleanup();
  after(cleanup.undoAll);
  const bases = new Map<string, string>();

  before(async () => {
    const site = await makeSite(await makeFolder(cleanup));
    bases.set('built-in', await startOrigin(cleanup, site));
    for (const [name, start] of Object.entries(servers)) if (onPath(name)) bases.set(name, await start(cleanup, site));
  });

  for (const server of ['nginx', 'caddy'] as const) {
    test(`${server} with the printed rules`, {
      skip: onPath(server) ? false : `${server} is not installed`,
    }, async () => {
      const differences: string[] = [];
      for (const [what, path, headers = {}, method] of rows) {
        const [ours, theirs] = await Promise.all(
          ['built-in', server].map((name) => ask(bases.get(name)!, path, headers, method)),
        );
        const tell = (name: string, a: unknown, b: unknown) => {
          if (a !== b) differences.push(`${what} ${path} ${name}: ${a} here, ${b} there`);
        };
        tell('status', ours!.status, theirs!.status);
        for (const name of compared) {
          const value = ({ headers: all }: Answer) => String(all[name] ?? 'none').toLowerCase();
          tell(name, value(ours!), value(theirs!));
        }
        for (const name of ['etag', 'last-modified']) tell(name, name in ours!.headers, name in theirs!.headers);
      }
      const unknown = differences.filter((line) => !known[server].some((pattern) => pattern.test(line)));
      assert.deepEqual(unknown, []);
      for (const pattern of known[server])
        assert.ok(
          differences.some((line) => pattern.test(line)),
          `${pattern} is no difference any more`,
        );
    });
  }
});
