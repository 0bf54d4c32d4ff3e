import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readHttp2Head } from './http2-head.ts';

const pseudo = [':method', 'GET', ':scheme', 'https', ':authority', 'Shop.example:8443', ':path', '/a?b'];
const read = (...lines: string[]) => readHttp2Head([...pseudo, ...lines], true);

describe('the head of an HTTP/2 request', () => {
  test('is translated to HTTP/1.1', () => {
    const head = read('x-a', '1', 'x-a', '2', 'accept', '*/*')!;
    assert.deepEqual([head.method, head.path], ['GET', '/a?b']);
    assert.deepEqual(head.rawHeaders, ['host', 'Shop.example:8443', 'x-a', '1', 'x-a', '2', 'accept', '*/*']);
  });

  test('a cookie that is split over several lines becomes one line', () => {
    assert.deepEqual(read('cookie', 'a=1', 'x', 'y', 'cookie', 'b=2')!.rawHeaders.slice(2), [
      ...['x', 'y'],
      ...['cookie', 'a=1; b=2'],
    ]);
  });

  test('a body without a length is chunked, with one it is not', () => {
    assert.deepEqual(readHttp2Head(pseudo, false)!.rawHeaders.slice(2), ['transfer-encoding', 'chunked']);
    const known = readHttp2Head([...pseudo, 'content-length', '5'], false)!;
    assert.deepEqual(known.rawHeaders.slice(2), ['content-length', '5']);
  });

  test('Host may repeat the authority, or stand in for it, and nothing else', () => {
    assert.deepEqual(read('host', 'shop.example:8443')!.rawHeaders, ['host', 'Shop.example:8443']);
    assert.equal(read('host', 'other.example'), null);
    const without = [':method', 'GET', ':scheme', 'https', ':path', '/'];
    assert.deepEqual(readHttp2Head([...without, 'host', 'a.example'], true)!.rawHeaders, ['host', 'a.example']);
    assert.equal(readHttp2Head(without, true), null);
    assert.equal(readHttp2Head([...without, 'host', 'a.example', 'host', 'b.example'], true), null);
  });

  test('a client that waits for 100 is noticed', () => {
    assert.equal(read('expect', '100-Continue')!.expectsContinue, true);
    assert.equal(read()!.expectsContinue, false);
  });

  const bad: Record<string, string[]> = {
    'a header of the connection': ['connection', 'close'],
    'a transfer encoding': ['transfer-encoding', 'chunked'],
    'te other than trailers': ['te', 'trailers, gzip'],
    'capitals in a name': ['X-A', '1'],
    'a colon in a name': ['x:a', '1'],
    'an empty name': ['', '1'],
    'a line feed': ['x-a', '1\n2'],
    'a carriage return': ['x-a', '1\r2'],
    'a NUL': ['x-a', '\0'],
    'space around a value': ['x-a', ' 1'],
    'two lengths': ['content-length', '5', 'content-length', '5'],
    'a length with a sign': ['content-length', '+5'],
    'a length that overflows': ['content-length', '18446744073709551616'],
    'two paths': [':path', '/'],
  };
  for (const [name, lines] of Object.entries(bad)) test(`malformed: ${name}`, () => assert.equal(read(...lines), null));

  test('malformed: a path with a space, another scheme, no path, a user in the authority', () => {
    const changed = (name: string, value: string) => {
      const lines = [...pseudo];
      lines[lines.indexOf(name) + 1] = value;
      return readHttp2Head(lines, true);
    };
    assert.equal(changed(':path', '/ HTTP/1.1'), null);
    assert.equal(changed(':path', ''), null);
    assert.equal(changed(':path', '/\xe9'), null);
    assert.equal(changed(':scheme', 'http'), null);
    assert.equal(changed(':authority', 'a@shop.example'), null);
    assert.equal(changed(':authority', ''), null);
  });
});
