import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import { checksumOf, newTokenSecret } from './create-token.ts';

test('a token is slc_, 30 base62 characters and the 6 of their CRC-32', () => {
  const secret = newTokenSecret();
  assert.match(secret, /^slc_[0-9A-Za-z]{36}$/);
  assert.equal(checksumOf(secret.slice(4, 34)), secret.slice(34));
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  const value = [...secret.slice(34)].reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0);
  assert.equal(value, crc32(secret.slice(4, 34)));
});
