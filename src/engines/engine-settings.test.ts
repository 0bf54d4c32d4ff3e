import assert from 'node:assert/strict';
import { test } from 'node:test';
import { engineText, leftBehind, type OpenableChoice, parseEngine, parseRegions } from './engine-settings.ts';

test('several Docker hosts are joined by +, and written back as they were', () => {
  const certs = 'tcp://b.example:2376?certs=/etc/docker/b';
  const text = `docker:tcp://a.example:2375+docker:${certs}+docker:/run/user/1+docker.sock`;
  const choice = parseEngine(text);
  const addresses = ['tcp://a.example:2375', certs, '/run/user/1+docker.sock'];
  assert.deepEqual(choice, { kind: 'docker-hosts', addresses });
  assert.equal(engineText(choice as OpenableChoice), text);
  assert.deepEqual(parseEngine('docker:+docker:tcp://b'), {
    kind: 'docker-hosts',
    addresses: ['/var/run/docker.sock', 'tcp://b'],
  });
  assert.deepEqual(parseEngine('docker:tcp://a'), { kind: 'docker', address: 'tcp://a' });
});

test('what cannot be one of several hosts is refused', () => {
  const refused: [string, RegExp][] = [
    ['eu=docker:tcp://a+standin:', /"standin:" cannot be one of several hosts/],
    ['eu=docker:tcp://a+auto', /"auto" cannot be one of several hosts/],
    ['eu=kubernetes:a+docker:tcp://b', /"kubernetes:a" cannot be one of several hosts/],
    ['eu=docker:tcp://a+docker:tcp://a', /names a host twice/],
    ['eu=docker:tcp://a?cert=/etc/docker', /must be a socket, tcp:\/\/host:port or/],
    ['eu=docker:tcp://a?certs=etc', /must be a socket/],
    ['eu=docker:ssh://a', /must be a socket/],
    ['eu=docker:tcp://a:port', /must be a socket/],
  ];
  for (const [value, message] of refused) assert.throws(() => parseRegions(value), message, value);
});

test('a host that is added leaves nothing behind, one that is taken out does', () => {
  assert.deepEqual(leftBehind('docker:tcp://a', 'docker:tcp://b+docker:tcp://a'), []);
  assert.deepEqual(leftBehind('docker:tcp://a+docker:tcp://b', 'docker:tcp://a'), ['docker:tcp://b']);
  assert.deepEqual(leftBehind('standin:', 'docker:tcp://a'), ['standin:']);
});
