import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseChallenges } from './registry-auth.ts';

// What registries send, word for word.
const sent: [header: string, understood: ReturnType<typeof parseChallenges>][] = [
  ['Basic realm="test"', [{ scheme: 'basic' }]],
  ['basic', [{ scheme: 'basic' }]],
  [
    'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/nginx:pull"',
    [
      {
        scheme: 'bearer',
        realm: 'https://auth.docker.io/token',
        service: 'registry.docker.io',
        scope: 'repository:library/nginx:pull',
      },
    ],
  ],
  [
    'Bearer realm="https://ghcr.io/token",scope="repository:a/b:pull,push"',
    [{ scheme: 'bearer', realm: 'https://ghcr.io/token', service: null, scope: 'repository:a/b:pull,push' }],
  ],
  [
    'Basic realm="Registry", Bearer realm="https://r.example/auth",service="a \\"quoted\\" one",error="invalid_token"',
    [
      { scheme: 'bearer', realm: 'https://r.example/auth', service: 'a "quoted" one', scope: null },
      { scheme: 'basic' },
    ],
  ],
  ['Negotiate', []],
  ['Bearer service="no realm"', []],
  ['', []],
];

for (const [header, understood] of sent) {
  test(`${header || 'no header'} is understood`, () => assert.deepEqual(parseChallenges(header), understood));
}

test('a hostile header takes no time', () => {
  const startedAt = process.cpuUsage();
  for (const piece of ['a', 'a=', ' ', ',', '"', 'a="\\', 'bearer ', ', bearer a'])
    parseChallenges(`Bearer realm="https://auth.example/",${piece.repeat(64_000 / piece.length)}`);
  const { user, system } = process.cpuUsage(startedAt);
  assert.ok(user + system < 500_000, `${(user + system) / 1000} ms`);
});
