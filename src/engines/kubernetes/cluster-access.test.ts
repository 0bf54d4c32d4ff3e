import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { stringify } from 'yaml';
import { AccessError, parseKubeconfig, readKubeconfig, tokenFile } from './cluster-access.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-kubeconfig-'));
after(() => rmSync(folder, { recursive: true }));
const path = join(folder, 'config');
const base64 = (text: string) => Buffer.from(text).toString('base64');

const config = (user: object, cluster: object = {}) =>
  stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'work',
    contexts: [
      { name: 'work', context: { cluster: 'c', user: 'u', namespace: 'team' } },
      { name: 'home', context: { cluster: 'elsewhere', user: 'u' } },
    ],
    clusters: [
      {
        name: 'c',
        cluster: { server: 'https://127.0.0.1:6443', 'certificate-authority-data': base64('CA'), ...cluster },
      },
      { name: 'elsewhere', cluster: { server: 'https://elsewhere.example/k8s/' } },
    ],
    users: [{ name: 'u', user }],
  });

const parse = (text: string, context: string | null = null, allowExec = false) =>
  parseKubeconfig(text, path, { context, allowExec });

test('the current context, or the one that is named', async () => {
  const access = parse(config({ token: 'secret' }));
  assert.equal(access.server, 'https://127.0.0.1:6443');
  assert.deepEqual([access.ca, access.namespace], ['CA', 'team']);
  assert.equal(await access.token!(false), 'secret');
  assert.equal(parse(config({}), 'home').server, 'https://elsewhere.example/k8s');
  assert.throws(() => parse(config({}), 'nowhere'), /has no context nowhere/);
});

test('certificates and tokens in files, seen from the folder of the kubeconfig', async () => {
  writeFileSync(join(folder, 'client.crt'), 'CERT');
  writeFileSync(join(folder, 'token'), 'first\n');
  const user = { 'client-certificate': 'client.crt', 'client-key-data': base64('KEY'), tokenFile: 'token' };
  const access = parse(config(user));
  assert.deepEqual(access.client, { cert: 'CERT', key: 'KEY' });
  assert.equal(await access.token!(false), 'first');
  assert.throws(() => parse(config({ 'client-certificate': 'client.crt' })), /without its key/);
  assert.throws(() => parse(config({ 'client-certificate': 'none.crt' })), /none\.crt, which cannot be read/);
});

test('a token in a file is read again as it is replaced, and when it is refused', async () => {
  const file = join(folder, 'rotating');
  let now = 0;
  writeFileSync(file, 'one');
  const token = tokenFile(file, () => now);
  assert.equal(await token(false), 'one');
  writeFileSync(file, 'two');
  assert.equal(await token(false), 'one', 'not for every request');
  assert.equal(await token(true), 'two', 'refused');
  writeFileSync(file, 'three');
  now = 31_000;
  assert.equal(await token(false), 'three');
  rmSync(file);
  await assert.rejects(token(true), /cannot be read/);
});

test('a program is run only where that is allowed', async () => {
  const program = join(folder, 'credential.sh');
  writeFileSync(
    program,
    '#!/bin/sh\necho "{\\"status\\":{\\"token\\":\\"$1-$EXTRA\\",\\"expirationTimestamp\\":\\"2999-01-01T00:00:00Z\\"}}"\n',
    { mode: 0o700 },
  );
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: './credential.sh',
    args: ['a b;c'],
    env: [{ name: 'EXTRA', value: 'x' }],
  };
  assert.throws(() => parse(config({ exec })), /which is not run: set SLUICE_KUBERNETES_EXEC=on/);
  const access = parse(config({ exec }), null, true);
  assert.equal(await access.token!(false), 'a b;c-x');
});

test('what would be less safe than it looks is refused', () => {
  const wrong: [text: string, words: RegExp][] = [
    [config({}, { server: 'http://127.0.0.1' }), /not https/],
    [config({}, { 'insecure-skip-tls-verify': true }), /insecure-skip-tls-verify/],
    [config({ username: 'a', password: 'b' }), /no longer accepts/],
    ['[', /not a kubeconfig/],
    ['a: 1', /no current context/],
  ];
  for (const [text, words] of wrong) {
    assert.throws(
      () => parse(text),
      (error) => error instanceof AccessError && words.test(error.message),
      text,
    );
  }
  assert.throws(() => readKubeconfig(join(folder, 'none'), { context: null, allowExec: false }), /cannot be read/);
});
