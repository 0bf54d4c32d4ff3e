import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameOf, parseImage, pinImage } from './references.ts';

const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;

const right: [text: string, name: string, tag: string | null, digest: string | null][] = [
  ['nginx', 'docker.io/library/nginx', 'latest', null],
  ['nginx:1.27', 'docker.io/library/nginx', '1.27', null],
  ['team/shop', 'docker.io/team/shop', 'latest', null],
  ['docker.io/nginx', 'docker.io/library/nginx', 'latest', null],
  ['index.docker.io/team/shop:a', 'docker.io/team/shop', 'a', null],
  ['localhost/shop', 'localhost/shop', 'latest', null],
  ['localhost:5000/shop:v1', 'localhost:5000/shop', 'v1', null],
  ['127.0.0.1:5000/a/b/c:V1.0_x-y', '127.0.0.1:5000/a/b/c', 'V1.0_x-y', null],
  ['[::1]:5000/shop', '[::1]:5000/shop', 'latest', null],
  ['Registry/shop', 'Registry/shop', 'latest', null],
  ['ghcr.io/team/shop@' + digest, 'ghcr.io/team/shop', null, digest],
  ['ghcr.io:443/team/shop:v2@' + digest, 'ghcr.io:443/team/shop', 'v2', digest],
  ['a__b/c---d.e_f', 'docker.io/a__b/c---d.e_f', 'latest', null],
  [`shop:${'t'.repeat(128)}`, 'docker.io/library/shop', 't'.repeat(128), null],
];

test('references that Docker takes', () => {
  for (const [text, name, tag, digest] of right) {
    const parsed = parseImage(text);
    assert.ok(parsed, text);
    assert.deepEqual([nameOf(parsed), parsed.tag, parsed.digest], [name, tag, digest], text);
  }
});

test('what is no reference', () => {
  const wrong = ['', ' ', 'Nginx', 'nginx:', 'nginx:-a', 'nginx@', `nginx@${digest}0`, `nginx@${digest.toUpperCase()}`];
  wrong.push('/nginx', 'nginx/', 'a//b', 'ghcr.io/', 'ghcr.io/Shop', 'a_-b', '-a', 'a-', 'a b', 'nginx\n', 'nginx:a:b');
  wrong.push('https://ghcr.io/shop', 'ghcr.io:port/shop', '-x.io/shop', 'nginx:a/b', `nginx@sha512:${'0'.repeat(128)}`);
  wrong.push(
    `shop:${'t'.repeat(129)}`,
    `a/${'b'.repeat(260)}`,
    'é',
    'f'.repeat(64),
    digest,
    `nginx@${digest}@${digest}`,
  );
  for (const text of wrong) assert.equal(parseImage(text), null, text);
});

test('a pinned image is the full name with the digest, whatever tag or digest it had', () => {
  const other = `sha256:${'f'.repeat(64)}`;
  for (const [text, name] of right) assert.equal(pinImage(text, other), `${name}@${other}`, text);
  assert.equal(pinImage(pinImage('localhost:5000/shop:v1', digest), other), `localhost:5000/shop@${other}`);
  assert.throws(() => pinImage('Not an image', other), TypeError);
});
