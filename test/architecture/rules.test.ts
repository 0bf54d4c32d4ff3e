// The rules themselves: each one fails where it should.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { againstOrder, betweenRooms, circles, readOrder } from './rules.ts';

const order = readOrder('audit, regions ← projects ← alerts');

test('an order is read by levels', () => {
  assert.deepEqual(order, [['audit', 'regions'], ['projects'], ['alerts']]);
});

test('an import to the left is fine; to the right, or to a neighbour, it is not', () => {
  const imports = new Map([
    ['src/alerts/routes.ts', ['src/projects/queries.ts', 'src/alerts/queries.ts', 'src/lib/ids.ts']],
    ['src/projects/routes.ts', ['src/alerts/defaults.ts']],
    ['src/audit/routes.ts', ['src/regions/regions.ts']],
  ]);
  assert.deepEqual(againstOrder(imports, order), [
    'src/projects/routes.ts imports src/alerts/defaults.ts',
    'src/audit/routes.ts imports src/regions/regions.ts',
  ]);
});

test('two files that import each other are a circle, however long the way is', () => {
  const imports = new Map([
    ['src/a/one.ts', ['src/a/two.ts']],
    ['src/a/two.ts', ['src/b/three.ts', 'src/a/leaf.ts']],
    ['src/b/three.ts', ['src/a/one.ts']],
    ['src/a/leaf.ts', []],
  ]);
  assert.deepEqual(circles(imports), [['src/a/one.ts', 'src/a/two.ts', 'src/b/three.ts']]);
  assert.deepEqual(circles(betweenRooms(imports)), [['a', 'b']]);
});
