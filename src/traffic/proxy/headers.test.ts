import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { hostNameOf, pathOf, readHead, responseHeaders } from './headers.ts';

describe('the head of a request', () => {
  test('keeps names, order and repetition', () => {
    const raw = ['Host', 'a', 'X-B', '1', 'x-b', '2', 'Accept', '*/*'];
    assert.deepEqual(readHead(raw).headers, raw);
  });

  test('what says where the message ends stays, even where Connection names it', () => {
    const raw = ['Host', 'a', 'Connection', 'content-length, host, x-a', 'Content-Length', '3', 'X-A', '1'];
    const { headers, hasBody } = readHead(raw);
    assert.deepEqual(headers, ['Host', 'a', 'Content-Length', '3']);
    assert.equal(hasBody, true);
  });

  test('knows whether there is a body', () => {
    assert.equal(readHead(['Content-Length', '0']).hasBody, false);
    assert.equal(readHead(['content-length', '1']).hasBody, true);
    assert.equal(readHead(['Transfer-Encoding', 'Chunked']).hasBody, true);
    assert.equal(readHead(['Transfer-Encoding', 'gzip, chunked']).unsupportedEncoding, true);
  });

  test('finds the bucket in any of several cookie lines', () => {
    assert.equal(readHead(['Cookie', 'a=b', 'cookie', 'sluice_revision=7']).bucket, 7);
    assert.equal(readHead(['Cookie', 'a=b']).bucket, -1);
  });
});

describe('the head of a response', () => {
  test('a length where there can be no body, and trailers where there can be none, are not announced', () => {
    assert.deepEqual(responseHeaders(['content-length', '5'], true, false), []);
    assert.deepEqual(responseHeaders(['trailer', 'x', 'content-length', '5'], false, true), ['content-length', '5']);
    assert.deepEqual(responseHeaders(['trailer', 'x'], false, false), []);
    assert.deepEqual(responseHeaders(['trailer', 'x'], false, true), ['trailer', 'x']);
  });
});

test('a host name is lower case, without port and final dot', () => {
  for (const [header, name] of [
    ['shop.example', 'shop.example'],
    ['Shop.Example:8000', 'shop.example'],
    ['shop.example.', 'shop.example'],
    ['127.0.0.1:80', '127.0.0.1'],
    ['[::1]', '[::1]'],
    ['[2001:DB8::1]:443', '[2001:db8::1]'],
  ]) {
    assert.equal(hostNameOf(header!), name);
  }
});

test('what is no host name is none', () => {
  for (const header of [
    '',
    ':80',
    'a:',
    'a:b',
    'a:123456',
    'a:80:90',
    '[::1',
    '[::1]x',
    'a/b',
    'a b',
    'a@b',
    'a"b',
    'é',
  ]) {
    assert.equal(hostNameOf(header), '', header);
  }
});

test('a path is taken from a target of the same host only', () => {
  assert.equal(pathOf('/a?b#c', 'shop.example'), '/a?b#c');
  assert.equal(pathOf('//other/a', 'shop.example'), '//other/a');
  assert.equal(pathOf('http://SHOP.example:80/a', 'shop.example:80'), '/a');
  assert.equal(pathOf('http://shop.example', 'shop.example'), '/');
  assert.equal(pathOf('http://shop.example?b', 'shop.example'), '/?b');
  for (const target of ['*', '', 'a', 'http://other/', 'http://shop.example:80/', 'ftp://shop.example/', 'http:///a']) {
    assert.equal(pathOf(target, 'shop.example'), null, target);
  }
});
