import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostNameOf, pathOf } from './read-request.ts';

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
