// The data plane runs without the control plane: what carries requests needs lib and nothing else of the service, no
// database, API or other feature.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

const dataPlane = /^src\/traffic\/(proxy\/|measure\/|table\.ts$|balance\.ts$|data-plane\.ts$)/;

const importsOf = (path: string): string[] =>
  [...readFileSync(path, 'utf8').matchAll(/(?:from|import\(?)\s*'(\.[^']+)'/g)].map(([, target]) =>
    normalize(join(dirname(path), target!)),
  );

test('the data plane imports only lib and itself', () => {
  const files = globSync('src/traffic/**/*.ts').filter((path) => dataPlane.test(path));
  assert.ok(files.includes('src/traffic/proxy/proxy.ts'));
  for (const path of files) {
    for (const target of importsOf(path)) {
      assert.ok(dataPlane.test(target) || target.startsWith('src/lib/'), `${path} imports ${target}`);
    }
  }
});

test('no two of its files import each other, directly or through others', () => {
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    assert.ok(!trail.includes(path), [...trail, path].join(' → '));
    if (done.has(path)) return;
    for (const target of importsOf(path)) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of globSync('src/traffic/**/*.ts')) if (dataPlane.test(path)) visit(path, []);
});
