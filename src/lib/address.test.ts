import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { mayConnect, parseAddress, parseRange, type Range } from './address.ts';

const closed = { allowLoopback: false, allowed: [] };

const refused = [
  '0.0.0.0',
  '10.0.0.1',
  '100.64.0.1',
  '127.0.0.1',
  '127.255.255.254',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '192.0.2.1',
  '198.18.0.1',
  '168.63.129.16',
  '::ffff:168.63.129.16',
  '100.100.100.200',
  '192.0.0.192',
  'fd00:ec2::254',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:10.0.0.1',
  '::ffff:a00:1',
  '::ffff:127.0.0.1',
  '0:0:0:0:0:ffff:a9fe:a9fe',
  '::10.0.0.1',
  '::7f00:1',
  '64:ff9b::10.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b:1::808:808',
  '2002:a00:1::',
  '2002:7f00:1::1',
  '2001:0:4136:e378:8000:63bf:3fff:fdd2',
  '2001:db8::1',
  'fc00::1',
  'fd12:3456::1',
  'fe80::1',
  'fe80::1%eth0',
  'fec0::1',
  'ff02::1',
  'localhost',
  '0x7f.1',
  '2130706433',
  '',
];
const allowed = ['8.8.8.8', '172.15.0.1', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '::ffff:8.8.8.8'];
const carried = ['64:ff9b::8.8.8.8', '2002:808:808::1'];

test('what is not public is refused, in every spelling', () => {
  for (const text of refused) assert.equal(mayConnect(text, closed), false, text);
  for (const text of [...allowed, ...carried]) assert.equal(mayConnect(text, closed), true, text);
});

test('a URL brings every spelling of an IPv4 address into the one that is judged', () => {
  for (const host of ['0x7f.1', '2130706433', '0177.0.0.1', '127.1', '127.0.0.1.', '１２７.0.0.1']) {
    assert.equal(mayConnect(new URL(`http://${host}/`).hostname.replace(/\.$/, ''), closed), false, host);
  }
});

test('loopback and chosen ranges can be opened, and nothing beside them', () => {
  const own = { allowLoopback: true, allowed: [] };
  for (const text of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) assert.equal(mayConnect(text, own), true, text);
  assert.equal(mayConnect('10.0.0.1', own), false);
  const some = { allowLoopback: false, allowed: ['10.1.0.0/16', 'fd00::/8'].map((text) => parseRange(text) as Range) };
  for (const text of ['10.1.2.3', '::ffff:10.1.2.3', 'fd00::1']) assert.equal(mayConnect(text, some), true, text);
  for (const text of ['10.2.0.1', '127.0.0.1', 'fc00::1']) assert.equal(mayConnect(text, some), false, text);
});

test('ranges that are none', () => {
  for (const text of ['10.0.0.0', '10.0.0.0/33', '999.0.0.0/8', 'fd00::/129', '10.0.0.0/8/8', '/8', '10.0.0.0/']) {
    assert.equal(parseRange(text), null, text);
  }
});

test('an address means the same however it is written', () => {
  fc.assert(
    fc.property(fc.ipV6(), (text) => {
      const { hostname } = new URL(`http://[${text}]/`);
      assert.deepEqual(parseAddress(text), parseAddress(hostname.slice(1, -1)));
    }),
  );
});
