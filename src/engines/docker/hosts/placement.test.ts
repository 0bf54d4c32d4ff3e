import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Copy, chooseHost, copyThatCounts } from './placement.ts';

const hosts = ['a', 'b', 'c'];
const shop = { project: 'prj_1', environment: 'production', revision: 3 };
const other = { project: 'prj_2', environment: 'production', revision: 3 };

test('fewest of the same revision first, then fewest at all, then in order', () => {
  const on = (host: string, of = shop) => ({ ...of, host });
  assert.equal(chooseHost(hosts, [], shop), 'a');
  assert.equal(chooseHost(hosts, [on('a'), on('b')], shop), 'c');
  assert.equal(chooseHost(hosts, [on('a'), on('b', other), on('c', other)], shop), 'b');
  assert.equal(chooseHost(hosts, [on('b', other), on('a', { ...shop, revision: 2 })], shop), 'c');
  assert.equal(chooseHost(['a', 'b'], [on('a'), on('b', other), on('b', other), on('b', other)], shop), 'b');
  assert.equal(chooseHost([], [on('a')], shop), null);
});

test('of copies the one that can be asked counts, then one that runs, then the newest, in whichever order they come', () => {
  const copy = (more: Partial<Copy>): Copy => ({ isCurrent: true, state: 'running', createdAt: 100, ...more });
  const pairs: [Copy, Copy][] = [
    [copy({}), copy({ isCurrent: false, createdAt: 200 })],
    [copy({}), copy({ state: 'created', createdAt: 200 })],
    [copy({ state: 'created' }), copy({ state: 'exited', createdAt: 200 })],
    [copy({ createdAt: 101 }), copy({})],
  ];
  for (const [counts, not] of pairs) {
    assert.equal(copyThatCounts([counts, not]), counts);
    assert.equal(copyThatCounts([not, counts]), counts);
  }
});
