import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutSecrets } from './log.ts';

test('what could be a secret is cut out wherever it stands, and nothing else is touched', () => {
  const request = {
    path: '/v1',
    headers: { Authorization: 'x', authorization: 'Bearer x' },
    list: [{ token: 'x', id: 1 }],
  };
  assert.deepEqual(withoutSecrets(request), {
    path: '/v1',
    headers: { Authorization: 'x', authorization: '[redacted]' },
    list: [{ token: '[redacted]', id: 1 }],
  });
  assert.equal(request.headers.authorization, 'Bearer x');
  const harmless = { token_id: 'tok_1', status: 200, nested: { at: null } };
  assert.equal(withoutSecrets(harmless), harmless);
});

test('a value that holds itself does not run for ever', () => {
  const loop: Record<string, unknown> = {};
  loop.self = loop;
  assert.ok(JSON.stringify(withoutSecrets(loop)).length < 1000);
});
