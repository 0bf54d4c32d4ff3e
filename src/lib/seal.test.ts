import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { createSeal } from './seal.ts';

const seal = createSeal(randomBytes(32));

test('what was sealed opens again, and no two seals are alike', () => {
  const one = seal.seal('whsec_ünicode', 'webhook whk_1');
  assert.equal(seal.open(one, 'webhook whk_1'), 'whsec_ünicode');
  assert.notEqual(one, seal.seal('whsec_ünicode', 'webhook whk_1'));
});

test('another context, another key or a changed byte does not open', () => {
  const sealed = seal.seal('secret', 'a');
  assert.throws(() => seal.open(sealed, 'b'));
  assert.throws(() => createSeal(randomBytes(32)).open(sealed, 'a'));
  const bytes = Buffer.from(sealed.slice(3), 'base64url');
  bytes[bytes.length - 1]! ^= 1;
  assert.throws(() => seal.open(`v1.${bytes.toString('base64url')}`, 'a'));
});
