// How the console is served: its security policy, caching, size, and what it does not serve.
import assert from 'node:assert/strict';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import Fastify from 'fastify';
import { defaults } from '../../console/src/environment-defaults.ts';
import { environmentDefaults } from '../../src/contract/environments.ts';
import { mountConsole } from '../../src/http/console.ts';
import { startApp, type TestApp } from '../helpers/app.ts';
import { buildConsole } from '../helpers/browser.ts';

let t: TestApp;
before(async () => {
  buildConsole();
  t = await startApp();
});
after(() => t.stop());

/** Without fetch, which would normalise the path and decompress the body. */
function raw(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const { hostname, port } = new URL(t.url);
  return new Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
    const ask = request({ host: hostname, port, path, headers, method, agent: false }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk) => chunks.push(chunk));
      answer.on('end', () =>
        resolve({ status: answer.statusCode!, headers: answer.headers, body: Buffer.concat(chunks) }),
      );
    });
    ask.on('error', reject);
    ask.end();
  });
}

const scripts = (html: string) => [...html.matchAll(/src="(\/console\/assets\/[^"]+\.js)"/g)].map(([, path]) => path!);

test('the page: a strict policy, revalidated on every use, and 304 for a client that has it', async () => {
  const { status, headers, body } = await raw('/console');
  assert.equal(status, 200);
  assert.equal(headers['content-type'], 'text/html; charset=utf-8');
  assert.equal(headers['cache-control'], 'no-cache');
  assert.equal(headers['x-content-type-options'], 'nosniff');
  assert.equal(headers['referrer-policy'], 'no-referrer');
  assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
  const policy = String(headers['content-security-policy']).split('; ').sort();
  assert.deepEqual(policy, [
    "base-uri 'none'",
    "connect-src 'self'",
    "default-src 'none'",
    "font-src 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "img-src 'self' data:",
    "media-src 'self'",
    "script-src 'self'",
    "style-src 'self'",
  ]);
  assert.doesNotMatch(body.toString(), /<script(?![^>]* src=)|<style|style="|\son\w+=/, 'nothing inline');
  const again = await raw('/console', { 'if-none-match': String(headers.etag) });
  assert.equal(again.status, 304);
  assert.equal(again.body.length, 0);
});

test('every deep link gets the page', async () => {
  const page = (await raw('/console')).body;
  for (const path of ['/console/', '/console/projects', '/console/projects/prj_1/deployments/dpl_2?x=1']) {
    const answer = await raw(path);
    assert.equal(answer.status, 200, path);
    assert.deepEqual(answer.body, page, path);
  }
});

test('assets are stored compressed and cached without end; the first load is small', async (c) => {
  const [script, ...more] = scripts((await raw('/console')).body.toString());
  assert.deepEqual(more, [], 'one script');
  const plain = await raw(script!);
  assert.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable');
  assert.equal(plain.headers['content-encoding'], undefined);
  assert.equal(plain.headers.vary, 'Accept-Encoding');
  const br = await raw(script!, { 'accept-encoding': 'gzip, deflate, br, zstd' });
  assert.equal(br.headers['content-encoding'], 'br');
  assert.deepEqual(brotliDecompressSync(br.body), plain.body);
  const gz = await raw(script!, { 'accept-encoding': 'gzip' });
  assert.equal(gz.headers['content-encoding'], 'gzip');
  assert.deepEqual(gunzipSync(gz.body), plain.body);
  assert.notEqual(br.headers.etag, gz.headers.etag);
  c.diagnostic(`script: ${br.body.length} bytes br, ${gz.body.length} gzip, ${plain.body.length} plain`);
  assert.ok(br.body.length <= 170_000 && gz.body.length <= 170_000);
});

test('no path leads outside the build', async () => {
  const page = (await raw('/console')).body;
  const tricks = [
    ...['/console/../package.json', '/console/..%2fpackage.json', '/console/%2e%2e/package.json'],
    ...['/console/..%5cpackage.json', '/console//etc/passwd', '/console/assets/../../../package.json'],
    ...['/console/%00', '/console/index.html.br', '/console/assets/'],
  ];
  for (const path of tricks) {
    const { status, body } = await raw(path);
    assert.ok([400, 404].includes(status) || body.equals(page), `${path}: ${status} ${body}`);
  }
  assert.equal((await raw('/console/assets/gone-12345678.js')).status, 404);
});

test('GET and HEAD only', async () => {
  const head = await raw('/console', {}, 'HEAD');
  assert.equal(head.status, 200);
  assert.equal(head.body.length, 0);
  assert.ok(Number(head.headers['content-length']) > 0);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const { status, headers } = await raw('/console/projects', {}, method);
    assert.equal(status, 405, method);
    assert.equal(headers.allow, 'GET, HEAD');
  }
});

test('the build contains no secret and no source', () => {
  for (const file of globSync('console/dist/**/*.{js,css,html}')) {
    assert.doesNotMatch(readFileSync(file, 'utf8'), /sourceMappingURL|slc_|typebox/i, file);
  }
  assert.deepEqual(globSync('console/dist/**/*.map'), []);
});

test('503 with the command to run while the console is not built, and the page once it is', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'sluice-console-'));
  const folder = `${parent}/dist/`;
  const server = Fastify();
  mountConsole(server, folder);
  const missing = await server.inject('/console/projects');
  assert.equal(missing.statusCode, 503);
  assert.match(missing.body, /npm run build/);
  mkdirSync(folder);
  writeFileSync(`${folder}index.html`, '<!doctype html>');
  const found = await server.inject('/console/projects');
  assert.equal(found.statusCode, 200);
  assert.equal(found.body, '<!doctype html>');
  await server.close();
  rmSync(parent, { recursive: true });
});

test('the defaults beside the fields are those of the service', () => {
  const { port, ...rest } = environmentDefaults;
  assert.equal(port, 8080, 'its field says so in words');
  assert.deepEqual(defaults, rest);
});

test('a process without the role api has no console', async () => {
  const other = await startApp({ env: { SLUICE_ROLES: 'catalogue,router,worker' } });
  assert.equal((await fetch(`${other.url}/console`)).status, 404);
  await other.stop();
});
