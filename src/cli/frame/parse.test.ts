import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settingsOf } from '../commands/environments.ts';
import { countOf, readTime } from './parse.ts';

test('settings become the body of a change', () => {
  assert.deepEqual(settingsOf(['replicas=3', 'canary.steps=25,50', 'canary.advance=manual', 'auto_rollback=false']), {
    replicas: 3,
    canary: { steps: [25, 50], advance: 'manual' },
    auto_rollback: false,
  });
  assert.deepEqual(settingsOf(['health_check.path=null', 'canary.steps=']), {
    health_check: { path: null },
    canary: { steps: [] },
  });
  assert.throws(() => settingsOf(['canary.bake=5']), /Did you mean canary\.bake_s\?/);
  assert.throws(() => settingsOf(['replicas']), /not NAME=VALUE/);
});

test('what a verb’s arguments ask for', () => {
  assert.deepEqual(countOf(''), { least: 0, most: 0 });
  assert.deepEqual(countOf('ID [DELIVERY]'), { least: 1, most: 2 });
  assert.deepEqual(countOf('NAME…'), { least: 1, most: Number.POSITIVE_INFINITY });
});

test('times are given as such, or as how long ago', () => {
  const now = Date.UTC(2026, 10, 15, 12);
  assert.equal(readTime('1h', 'since', now), '2026-11-15T11:00:00.000Z');
  assert.equal(readTime('90s', 'since', now), '2026-11-15T11:58:30.000Z');
  assert.equal(readTime('2026-11-14', 'since', now), '2026-11-14T00:00:00.000Z');
  for (const text of ['', 'yesterday', '1y', '-1h'])
    assert.throws(() => readTime(text, 'since', now), /--since must be/);
});
