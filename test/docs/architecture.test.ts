// Imports point one way: lib ← contract ← db, engines ← http ← features ← app ← main.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

/** A folder may import from itself, from those of a lower layer, and from what is named beside it. */
const layers: Record<string, number> = {
  lib: 0,
  contract: 1,
  catalogue: 1,
  client: 2,
  db: 2,
  engines: 2,
  http: 3,
};
const featureLayer = 4;
const topLayer = 5;
const features = [
  'alerts',
  'audit',
  'deployments',
  'domains',
  'environments',
  'events',
  'projects',
  'regions',
  'tokens',
  'traffic',
  'webhooks',
];
/** Files at the top of src/ that lower layers may use. */
const low: Record<string, number> = { 'config.ts': 1, 'data-dir.ts': 1 };
/** What one feature may use of another. */
const shared =
  /\/(queries|key|make|secret|change|host|regions|in-progress|outbox|deliveries|defaults|incidents|measurements)\.ts$/;

const folderOf = (path: string) => (path.split('/').length > 2 ? path.split('/')[1]! : '');
function layerOf(path: string): number {
  const folder = folderOf(path);
  if (folder === '') return low[path.split('/')[1]!] ?? topLayer;
  if (folder === 'cli' || folder === 'wiring') return topLayer;
  return features.includes(folder) ? featureLayer : layers[folder]!;
}

const files = globSync('src/**/*.ts').filter((path) => !path.endsWith('.test.ts'));
const importsOf = (path: string) =>
  [...readFileSync(path, 'utf8').matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, target]) =>
    normalize(join(dirname(path), target!)),
  );

test('every folder has its place', () => {
  for (const path of files) assert.notEqual(layerOf(path), undefined, `${path} is in no layer`);
});

test('no import points upwards', () => {
  for (const path of files) {
    for (const target of importsOf(path)) {
      assert.ok(layerOf(target) <= layerOf(path), `${path} imports ${target}`);
    }
  }
});

test('a feature uses of another only its queries and rules, never its routes or loops', () => {
  for (const path of files.filter((file) => layerOf(file) === featureLayer)) {
    for (const target of importsOf(path)) {
      if (layerOf(target) !== featureLayer || folderOf(target) === folderOf(path)) continue;
      assert.match(target, shared, `${path} imports ${target}`);
    }
  }
});

test('features see only the interface of the engines; the catalogue needs only lib; the client only contract', () => {
  for (const path of files) {
    for (const target of importsOf(path)) {
      const [from, to] = [folderOf(path), folderOf(target)];
      if (features.includes(from) && to === 'engines') assert.match(target, /engine\.ts$/, `${path} imports ${target}`);
      if (from === 'catalogue') assert.ok(to === 'catalogue' || to === 'lib', `${path} imports ${target}`);
      if (from === 'client') assert.ok(to === 'client' || to === 'contract', `${path} imports ${target}`);
    }
  }
});

test('only main.ts and the command line read the environment', () => {
  for (const path of files) {
    if (path === 'src/main.ts' || path.startsWith('src/cli/')) continue;
    assert.ok(!readFileSync(path, 'utf8').includes('process.env'), path);
  }
});
