import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseImage } from '../../contract/references.ts';
import { InvalidSetting } from '../../lib/setting-parsers.ts';
import { endpointsOf, isRefused, parseMirrors } from './registry-endpoints.ts';

const originsOf = (image: string, mirrors = '') =>
  endpointsOf(parseImage(image)!, parseMirrors(mirrors)).map(
    ({ origin, isMirror }) => `${origin}${isMirror ? ' *' : ''}`,
  );

test('without TLS only on loopback', () => {
  assert.deepEqual(originsOf('registry.example/shop'), ['https://registry.example']);
  assert.deepEqual(originsOf('10.0.0.7:5000/shop'), ['https://10.0.0.7:5000']);
  assert.deepEqual(originsOf('127.0.0.1:5000/shop'), ['http://127.0.0.1:5000']);
  assert.deepEqual(originsOf('localhost:5000/shop'), ['http://localhost:5000']);
  assert.deepEqual(originsOf('[::1]:5000/shop'), ['http://[::1]:5000']);
  assert.deepEqual(originsOf('localhost.example/shop'), ['https://localhost.example']);
});

test('Docker Hub is asked at its registry, after its mirrors', () => {
  assert.deepEqual(originsOf('nginx'), ['https://registry-1.docker.io']);
  const mirrors = 'docker.io=https://one.example,docker.io=http://127.0.0.1:5000,quay.io=https://two.example';
  assert.deepEqual(originsOf('nginx', mirrors), [
    'https://one.example *',
    'http://127.0.0.1:5000 *',
    'https://registry-1.docker.io',
  ]);
  assert.deepEqual(originsOf('registry.example/shop', mirrors), ['https://registry.example']);
});

test('a mirror that could be listened to, or that is no address, is a mistake', () => {
  for (const value of ['docker.io', 'docker.io=mirror', 'docker.io=http://mirror.example', 'a=https://u:p@b.example']) {
    assert.throws(() => parseMirrors(value), InvalidSetting, value);
  }
});

test('a registry may be in a private network, but not where a machine keeps its credentials', () => {
  for (const address of ['169.254.169.254', '168.63.129.16', 'fe80::1', 'fd00:ec2::254', '::ffff:169.254.169.254']) {
    assert.equal(isRefused(address), true, address);
  }
  for (const address of ['127.0.0.1', '10.0.0.7', '192.168.1.2', '203.0.113.9', 'fd12::1', '2001:4860::1']) {
    assert.equal(isRefused(address), false, address);
  }
});
