// The house as ARCHITECTURE.md describes it: the two orders are read from there.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { againstOrder, betweenRooms, circles, edges, type Imports, readOrder, roomOf } from './rules.ts';

const sourcesIn = (folders: string): string[] =>
  globSync(`${folders}/**/*.{ts,js}`).filter((path) => !path.endsWith('.test.ts'));
const importsOf = (paths: string[]): Imports =>
  new Map(
    paths.map((path) => [
      path,
      [...readFileSync(path, 'utf8').matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, target]) =>
        normalize(join(dirname(path), target!)),
      ),
    ]),
  );
const files = sourcesIn('src');
const imports = importsOf(files);

const page = readFileSync('ARCHITECTURE.md', 'utf8');
const orderStartingWith = (first: string): string[][] => {
  const line = new RegExp(`^\`(${first}[^\`]*←[^\`]*)\`$`, 'm').exec(page)?.[1];
  assert.ok(line, `ARCHITECTURE.md has no order that starts with ${first}`);
  return readOrder(line);
};
const layers = orderStartingWith('lib');
const features = orderStartingWith('accounts');
const featureNames = features.flat();
/** The layers, with the features in their place. */
const order = layers.flatMap((level) => (level.includes('features') ? features : [level]));

test('every room has its place in the order', () => {
  const known = new Set([...order.flat(), 'config.ts', 'settings.ts', 'data-dir.ts', 'version.ts']);
  assert.deepEqual([...new Set(files.map(roomOf))].filter((room) => !known.has(room)).sort(), []);
});

test('imports point one way, between layers and between features', () => {
  assert.deepEqual(againstOrder(imports, order), []);
});

test('no circles between rooms, nor between files, types included', () => {
  assert.deepEqual(circles(betweenRooms(imports)), []);
  assert.deepEqual(circles(importsOf(sourcesIn('{src,simulation,attack,bench}'))), []);
});

const dataPlane =
  /^src\/traffic\/(proxy\/|worker\/|haproxy\/|(measurements|request-detail|latency|balance|data-plane)\.ts$)/;

/** What a room may know besides itself. */
const confined: { from: RegExp; to: RegExp; why: string }[] = [
  { from: /^src\/catalogue\//, to: /^src\/(catalogue|lib)\//, why: 'the catalogue needs only lib' },
  {
    from: /^src\/supervisor\//,
    to: /^src\/(supervisor|lib)\/|^src\/(config|data-dir)\.ts$|^src\/(wiring\/worker-settings|traffic\/worker\/agent-protocol|traffic\/haproxy\/(choose-plane|haproxy-files|haproxy-process))\.ts$/,
    why: 'the supervisor loads nothing of what it starts',
  },
  { from: /^src\/client\//, to: /^src\/(client|contract)\//, why: 'the client needs only contract' },
  {
    from: dataPlane,
    to: new RegExp(`${dataPlane.source}|^src/lib/`),
    why: 'the data plane runs without the control plane',
  },
];

test('some rooms know only some others', () => {
  const wrong = edges(imports).flatMap(([from, to]) =>
    confined
      .filter((rule) => rule.from.test(from) && !rule.to.test(to))
      .map(({ why }) => `${from} imports ${to}: ${why}`),
  );
  assert.deepEqual(wrong, []);
});

test('features know an engine only by its interface, and of the router only its data, never its proxy', () => {
  const wrong = edges(imports).filter(([from, to]) => {
    if (!featureNames.includes(roomOf(from))) return false;
    if (roomOf(to) === 'engines') return to !== 'src/engines/engine.ts';
    return roomOf(from) !== 'traffic' && to.startsWith('src/traffic/proxy/');
  });
  assert.deepEqual(wrong, []);
});

test('a feature uses of another its queries and rules, never its routes or loops', () => {
  const isEntry = /\/(routes|[a-z-]+-routes|reconciler|dispatcher|watcher|issuer|agent)\.ts$/;
  const wrong = edges(imports).filter(
    ([from, to]) => featureNames.includes(roomOf(from)) && roomOf(from) !== roomOf(to) && isEntry.test(to),
  );
  assert.deepEqual(wrong, []);
});

const entries = new Set(['src/main.ts', 'src/control.ts', 'src/traffic/worker/main.ts']);

test('only entries of processes and the command line read the environment', () => {
  for (const path of files) {
    if (entries.has(path) || path.startsWith('src/cli/')) continue;
    assert.ok(!readFileSync(path, 'utf8').includes('process.env'), path);
  }
});

test('each of the three paths through the code is at most 12 files long', () => {
  const section = /^## Three paths, file by file$([\s\S]*?)^## /m.exec(page)![1]!;
  const paths = section.split(/^\*\*.*\*\*$/m).slice(1);
  assert.equal(paths.length, 3);
  for (const path of paths) {
    const steps = [...path.matchAll(/^\d+\. `([a-z0-9/-]+\.ts)`: \S/gm)].map(([, file]) => file!);
    assert.ok(steps.length > 5 && steps.length <= 12, steps.join(', '));
    assert.deepEqual(
      steps.filter((file) => !files.includes(`src/${file}`)),
      [],
    );
  }
});

test('every path that ARCHITECTURE.md names exists', () => {
  const named = [...page.matchAll(/`([a-z0-9/-]+\.ts)`/g)].map(([, path]) => path!);
  const missing = named.filter((path) => !files.some((file) => file === `src/${path}` || file.endsWith(`/${path}`)));
  assert.deepEqual(missing, []);
  assert.ok(named.length > 40);
});
