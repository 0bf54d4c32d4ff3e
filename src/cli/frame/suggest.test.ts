import assert from 'node:assert/strict';
import { test } from 'node:test';
import { didYouMean, distance, nearest } from './suggest.ts';

test('distance counts letters added, dropped, replaced and swapped', () => {
  for (const [from, to, expected] of [
    ['', 'abc', 3],
    ['deploy', 'deploy', 0],
    ['delpoy', 'deploy', 1],
    ['deply', 'deploy', 1],
    ['dploi', 'deploy', 2],
  ] as const) {
    assert.equal(distance(from, to), expected, `${from} ${to}`);
  }
});

test('suggests what is near, and nothing where nothing is', () => {
  const known = ['deploy', 'deployments', 'domains', 'logs', 'login'];
  assert.equal(nearest('delpoy', known), 'deploy');
  assert.equal(nearest('domain', known), 'domains');
  assert.equal(nearest('lgos', known), 'logs');
  assert.equal(nearest('frobnicate', known), undefined);
  assert.equal(nearest('x', known), undefined);
  assert.equal(didYouMean('projet', ['project'], '--'), ' Did you mean --project?');
});
