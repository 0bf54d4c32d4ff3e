// The same checks for every server of a catalogue: the built-in origin, and nginx and Caddy with the printed rules. A
// check that a server cannot pass says so, and so does the documentation.
import assert from 'node:assert/strict';
import { readdir, readlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { onPath } from '../../scripts/packages.ts';
import { until } from '../helpers/wait.ts';
import { collectCleanup, makeFolder } from './fixture.ts';
import { documentText, film, makeSite } from './plain-site.ts';
import { startCaddy, startNginx, startOrigin } from './servers.ts';

interface Answer {
  status: number;
  headers: Headers;
  body: Buffer;
}

type Server = 'built-in' | 'nginx' | 'caddy';
type Ask = (path: string, headers?: Record<string, string>, method?: string) => Promise<Answer>;

/** Sends a request line as it is; fetch would normalise the path first. */
function askRaw(base: string, target: string, hosts?: string[]): Promise<string> {
  const { hostname, port } = new URL(base);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.on('end', () => resolve(text)).on('error', reject);
  const lines = (hosts ?? [hostname]).map((host) => `Host: ${host}\r\n`).join('');
  socket.write(`GET ${target} HTTP/1.1\r\n${lines}Connection: close\r\n\r\n`);
  return promise;
}

const forAYear = 'public, max-age=31536000, immutable';
const forAMinute = 'public, max-age=60, stale-while-revalidate=300';

const kinds: [path: string, type: string, cache: string][] = [
  ['/health.txt', 'text/plain; charset=utf-8', 'no-store'],
  ['/api/streams.json', 'application/json', forAMinute],
  ['/media/SHA256SUMS', 'text/plain; charset=utf-8', forAMinute],
  ['/', 'text/html; charset=utf-8', forAMinute],
  ['/index.html', 'text/html; charset=utf-8', forAMinute],
  ['/gallery/gallery.js', 'text/javascript; charset=utf-8', forAMinute],
  ['/media/a/film.mp4', 'video/mp4', forAYear],
  ['/media/a/hls/00001.m4s', 'video/mp4', forAYear],
  ['/media/a/hls/main.m3u8', 'application/vnd.apple.mpegurl', forAYear],
  ['/media/a/thumbs.vtt', 'text/vtt; charset=utf-8', forAYear],
  ['/media/a/poster.jpg', 'image/jpeg', forAYear],
];

const nowhere = [
  '/media/none.mp4',
  '/api',
  '/media',
  '/media/',
  '/media/a/',
  '/media/.hidden',
  '/.git/config',
  '/media/../../outside.txt',
  '/media/%2e%2e/%2e%2e/outside.txt',
  '/media/..%2f..%2foutside.txt',
  '/media/..%5c..%5coutside.txt',
  '/media/%252e%252e/%252e%252e/outside.txt',
  '/media/a/film.mp4/x',
  '/media/a/film.mp4%00.txt',
];

function checks(server: Server, base: () => string): void {
  const ask: Ask = async (path, headers = {}, method = 'GET') => {
    const answer = await fetch(base() + path, { headers: { 'accept-encoding': 'identity', ...headers }, method });
    return { status: answer.status, headers: answer.headers, body: Buffer.from(await answer.arrayBuffer()) };
  };

  for (const [path, type, cache] of kinds) {
    test(`${path} has its type, cache rule and open CORS`, async () => {
      const { status, headers } = await ask(path);
      assert.equal(status, 200);
      assert.equal(headers.get('content-type')?.toLowerCase(), type);
      assert.equal(headers.get('cache-control'), cache);
      assert.equal(headers.get('access-control-allow-origin'), '*');
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.match(headers.get('etag') ?? '', /^"[^"]+"$/);
      assert.ok(headers.get('last-modified'));
    });
  }

  test('health is exactly three bytes', async () => assert.equal((await ask('/health.txt')).body.length, 3));

  for (const target of nowhere) {
    test(`${target} is not found, and that is not cached`, async () => {
      const text = await askRaw(base(), target);
      assert.match(text, /^HTTP\/1\.1 (404|400)/);
      assert.doesNotMatch(text, /secret/);
      // A server's own 400, for an invalid path, has none of our headers; no cache stores a 400.
      if (!text.startsWith('HTTP/1.1 400')) assert.match(text, /cache-control: no-store/i);
    });
  }

  test('the absolute form of a target is served like its path', async () => {
    const { host } = new URL(base());
    for (const target of [`http://${host}/health.txt`, `HTTP://${host}/health.txt?x`]) {
      const text = await askRaw(base(), target);
      assert.match(text, /^HTTP\/1\.1 200 [\s\S]*\r\n\r\nok\n$/, target);
    }
    assert.match(await askRaw(base(), `http://${host}/media/none.mp4`), /^HTTP\/1\.1 404/);
  });

  test('a request with two hosts, none, or one that is no host is 400', async () => {
    const wrong = [['a.example', 'b.example'], ['a.example', 'a.example'], [], ['a b']];
    for (const hosts of wrong)
      assert.match(await askRaw(base(), '/health.txt', hosts), /^HTTP\/1\.1 400/, hosts.join());
    if (server === 'built-in')
      assert.match(await askRaw(base(), '/health.txt', ['a', 'b']), /cache-control: no-store/i);
  });

  // Caddy follows links that lead outside; the printed rules say so.
  if (server !== 'caddy') {
    for (const path of ['/media/link.txt', '/media/up/outside.txt'])
      test(`${path} leads outside and is 404`, async () => assert.equal((await ask(path)).status, 404));
  }

  test('HEAD has the headers of GET, without a body', async () => {
    const [head, get] = [await ask('/media/a/film.mp4', {}, 'HEAD'), await ask('/media/a/film.mp4')];
    assert.equal(head.body.length, 0);
    for (const name of ['content-length', 'etag', 'content-type', 'cache-control'])
      assert.equal(head.headers.get(name), get.headers.get(name));
  });

  test('OPTIONS answers a preflight', async () => {
    const asked = {
      origin: 'https://x.example',
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'range',
    };
    const { status, headers } = await ask('/media/a/film.mp4', asked, 'OPTIONS');
    assert.equal(status, 204);
    assert.equal(headers.get('allow'), 'GET, HEAD, OPTIONS');
    assert.match(headers.get('access-control-allow-headers') ?? '', /Range/);
  });

  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
    test(`${method} is 405 with Allow`, async () => {
      const { status, headers } = await ask('/api/streams.json', {}, method);
      assert.equal(status, 405);
      assert.equal(headers.get('allow'), 'GET, HEAD, OPTIONS');
      assert.equal(headers.get('cache-control'), 'no-store');
    });
  }

  test('a client that has the file gets 304, with the validators and cache rule', async () => {
    const first = await ask('/api/streams.json');
    const etag = first.headers.get('etag')!;
    const conditions: Record<string, string>[] = [
      { 'if-none-match': etag },
      { 'if-modified-since': first.headers.get('last-modified')! },
    ];
    for (const headers of conditions) {
      const again = await ask('/api/streams.json', headers);
      assert.equal(again.status, 304);
      assert.equal(again.body.length, 0);
      assert.equal(again.headers.get('etag'), etag);
      assert.equal(again.headers.get('cache-control'), forAMinute);
    }
    assert.equal((await ask('/api/streams.json', { 'if-none-match': '"other"' })).status, 200);
    assert.equal((await ask('/api/streams.json', { 'if-match': '"other"' })).status, 412);
  });

  test('single ranges, from the start, the middle and the end', async () => {
    for (const [range, from, to] of [
      ['bytes=0-99', 0, 100],
      ['bytes=1000-199999', 1000, 200_000],
      ['bytes=-5', film.length - 5, film.length],
      ['bytes=299990-', 299_990, film.length],
    ] as const) {
      const { status, headers, body } = await ask('/media/a/film.mp4', { range });
      assert.equal(status, 206);
      assert.equal(headers.get('content-range'), `bytes ${from}-${to - 1}/${film.length}`);
      assert.ok(body.equals(film.subarray(from, to)), range);
    }
  });

  test('several ranges come as multipart, each with its bytes', async () => {
    const { status, headers, body } = await ask('/media/a/film.mp4', { range: 'bytes=0-9,100-119,-3' });
    assert.equal(status, 206);
    const boundary = /^multipart\/byteranges; boundary=(.+)$/.exec(headers.get('content-type') ?? '')?.[1];
    assert.equal(Number(headers.get('content-length')), body.length);
    const bodies = body
      .toString('latin1')
      .split(`--${boundary}`)
      .slice(1, -1)
      .map((part) => Buffer.from(part.slice(part.indexOf('\r\n\r\n') + 4, -2), 'latin1'));
    const expected = [film.subarray(0, 10), film.subarray(100, 120), film.subarray(-3)];
    assert.deepEqual(
      bodies,
      expected.map((each) => Buffer.from(each)),
    );
  });

  test('a range past the end is 416 with the length', async () => {
    const { status, headers } = await ask('/media/a/film.mp4', { range: 'bytes=300000-' });
    assert.equal(status, 416);
    assert.equal(headers.get('content-range'), `bytes */${film.length}`);
    // The other servers evaluate a range after they have set their headers: documented as the one difference.
    if (server === 'built-in') assert.equal(headers.get('cache-control'), 'no-store');
  });

  test('If-Range sends the part to a client with the same version, and the whole file to others', async () => {
    const etag = (await ask('/media/a/film.mp4')).headers.get('etag')!;
    assert.equal((await ask('/media/a/film.mp4', { range: 'bytes=0-9', 'if-range': etag })).status, 206);
    const other = await ask('/media/a/film.mp4', { range: 'bytes=0-9', 'if-range': '"other"' });
    assert.equal(other.status, 200);
    assert.equal(other.body.length, film.length);
  });

  test('stored compressed forms of a text are sent, each with its own tag', async () => {
    const plain = await ask('/api/streams.json');
    const encodings = server === 'nginx' ? ['gzip'] : ['gzip', 'br'];
    for (const encoding of encodings) {
      const answer = await ask('/api/streams.json', { 'accept-encoding': encoding });
      assert.equal(answer.headers.get('content-encoding'), encoding);
      assert.match(answer.headers.get('vary') ?? '', /accept-encoding/i);
      assert.equal(answer.headers.get('content-type'), 'application/json');
      assert.notEqual(answer.headers.get('etag'), plain.headers.get('etag'));
      assert.equal(answer.body.toString(), documentText);
    }
    assert.equal(plain.headers.get('content-encoding'), null);
    assert.match(plain.headers.get('vary') ?? '', /accept-encoding/i);
  });
}

describe('origins', () => {
  const cleanup = collectCleanup();
  after(cleanup.undoAll);
  let site = '';
  const bases = new Map<Server, string>();
  const starts = { 'built-in': startOrigin, nginx: startNginx, caddy: startCaddy };

  before(async () => {
    site = await makeSite(await makeFolder(cleanup));
    for (const [server, start] of Object.entries(starts) as [Server, typeof startOrigin][]) {
      if (server === 'built-in' || onPath(server)) bases.set(server, await start(cleanup, site));
    }
  });

  for (const server of ['built-in', 'nginx', 'caddy'] as const) {
    const missing = server !== 'built-in' && !onPath(server) ? `${server} is not installed` : false;
    describe(server, { skip: missing }, () => checks(server, () => bases.get(server)!));
  }

  test('a replaced file is served at once, with a new tag, from memory too', async () => {
    const url = `${bases.get('built-in')}/index.html`;
    const before = await fetch(url);
    await before.text();
    await writeFile(join(site, 'index.html'), '<!doctype html><title>another</title>');
    const after = await fetch(url);
    assert.match(await after.text(), /another/);
    assert.notEqual(after.headers.get('etag'), before.headers.get('etag'));
  });

  test('a compressed form of another text is not served', async () => {
    const url = `${bases.get('built-in')}/gallery/gallery.js`;
    const ask = async () => {
      const answer = await fetch(url, { headers: { 'accept-encoding': 'gzip' } });
      return [answer.headers.get('content-encoding'), await answer.text()];
    };
    assert.equal((await ask())[0], 'gzip');
    await writeFile(join(site, 'gallery/gallery.js'), 'export const changed = true;');
    assert.deepEqual(await ask(), [null, 'export const changed = true;']);
    await writeFile(join(site, 'gallery/gallery.js.gz'), gzipSync('export const changed = true;'));
    assert.deepEqual(await ask(), ['gzip', 'export const changed = true;']);
  });

  test('a client that leaves in the middle of a file leaves nothing open', async () => {
    const large = join(site, 'media/a/large.mp4');
    await writeFile(large, Buffer.alloc(50_000_000));
    for (let i = 0; i < 5; i++) {
      const leave = new AbortController();
      const answer = await fetch(`${bases.get('built-in')}/media/a/large.mp4`, { signal: leave.signal });
      await answer.body!.getReader().read();
      leave.abort();
    }
    await until('every file is closed', async () => !(await openFiles()).includes(large));
  });
});

async function openFiles(): Promise<string[]> {
  const names = await readdir('/proc/self/fd');
  return Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
}
