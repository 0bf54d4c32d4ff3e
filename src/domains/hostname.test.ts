import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkHostname, hostOf } from './hostname.ts';

const reserved = { routerDomain: 'apps.example', hosts: ['api.example.com'] };
const kept = (text: string) => checkHostname(text, reserved).hostname;
const mistake = (text: string) => checkHostname(text, reserved).mistake;

test('a name is kept in ASCII, lower case, without a dot at its end', () => {
  assert.equal(kept('shop.example'), 'shop.example');
  assert.equal(kept('Shop.EXAMPLE.'), 'shop.example');
  assert.equal(kept('bücher.example'), 'xn--bcher-kva.example');
  assert.equal(kept('BÜCHER.example'), 'xn--bcher-kva.example');
  assert.equal(kept('xn--bcher-kva.example'), 'xn--bcher-kva.example');
  assert.equal(kept('例え。テスト'), 'xn--r8jz45g.xn--zckzah');
  assert.equal(kept('a-b.c-d.example'), 'a-b.c-d.example');
  assert.equal(kept('3.example'), '3.example');
});

test('lengths: 63 for a part, 253 for all of it, counted in ASCII', () => {
  assert.equal(kept(`${'a'.repeat(63)}.example`), `${'a'.repeat(63)}.example`);
  assert.match(mistake(`${'a'.repeat(64)}.example`)!, /1 to 63/);
  const long = `${`${'a'.repeat(49)}.`.repeat(5)}exa`;
  assert.equal(long.length, 253);
  assert.equal(kept(long), long);
  assert.notEqual(mistake(`b${long}`), null);
  assert.notEqual(mistake(`${`${'üöä'.repeat(13)}.`.repeat(6)}example`), null);
});

test('what is no hostname is refused with a reason', () => {
  const cases: [string, RegExp][] = [
    ['*.shop.example', /wildcard/],
    ['shop.*', /wildcard/],
    ['https://shop.example', /without https/],
    ['shop.example:443', /port/],
    ['shop.example:', /port/],
    ['192.0.2.1', /address/],
    ['0x7f.1', /address/],
    ['[2001:db8::1]', /address/],
    ['2001:db8::1', /address/],
    ['shop', /dot/],
    ['localhost', /dot/],
    ['shop.example/path', /not a hostname/],
    ['me@shop.example', /not a hostname/],
    ['shop example.com', /not a hostname/],
    ['shop%2eexample.com', /not a hostname/],
    ['a_b.example', /not a hostname/],
    ['-a.example', /hyphen/],
    ['a-.example', /hyphen/],
    ['shop..example', /not a hostname/],
    ['.shop.example', /not a hostname/],
    ['shop.example..', /not a hostname/],
    ['.', /not a hostname/],
    ['xn--a.example', /not a hostname/],
    ['\u0000.example', /not a hostname/],
  ];
  for (const [text, reason] of cases) assert.match(mistake(text) ?? 'no mistake', reason, text);
});

test('names of the service itself are refused, names that only look like them are not', () => {
  assert.match(mistake('apps.example')!, /apps\.example/);
  assert.match(mistake('shop-production.apps.example')!, /apps\.example/);
  assert.match(mistake('a.b.APPS.example.')!, /apps\.example/);
  assert.match(mistake('api.example.com')!, /service itself/);
  assert.equal(kept('myapps.example'), 'myapps.example');
  assert.equal(kept('api.example.com.au'), 'api.example.com.au');
  assert.equal(kept('www.api.example.com'), 'www.api.example.com');
});

test('the host of a setting', () => {
  assert.deepEqual(hostOf('https://API.example.com:8443/x'), ['api.example.com']);
  assert.deepEqual(hostOf(null), []);
});
