import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRegistryAuths, RegistryConfigError } from './registry-logins.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');

test('what docker login writes is understood', () => {
  const auths = parseRegistryAuths(
    JSON.stringify({
      auths: {
        'https://index.docker.io/v1/': { auth: base64('ann:se:cret') },
        'ghcr.io': { username: 'bob', password: 'x' },
        'http://127.0.0.1:5000': { auth: base64('eve:\u00e9'), identitytoken: 'token' },
        'helper.example': {},
      },
      credsStore: 'pass',
    }),
    'config.json',
  );
  assert.deepEqual([...auths.keys()], ['docker.io', 'ghcr.io', '127.0.0.1:5000']);
  assert.equal(auths.get('docker.io')?.username, 'ann');
  assert.equal(auths.get('docker.io')?.password, 'se:cret');
  assert.equal(auths.get('ghcr.io')?.password, 'x');
  assert.equal(auths.get('127.0.0.1:5000')?.identitytoken, 'token');
});

test('a file without logins is no mistake', () => {
  for (const text of ['{}', '{"auths": {}}', '{"auths": null}']) assert.equal(parseRegistryAuths(text, 'x').size, 0);
});

test('a mistake is told without the secret', () => {
  const wrong = ['', '{', '{"auths": []}', '{"auths": 1}', `{"auths": {"a": {"auth": "${base64('secret')}"}}}`];
  for (const text of wrong) {
    assert.throws(
      () => parseRegistryAuths(text, 'config.json'),
      (error) => error instanceof RegistryConfigError && !error.message.includes('secret'),
      text,
    );
  }
});
