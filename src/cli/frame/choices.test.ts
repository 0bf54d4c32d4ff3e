import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settingsOf } from '../commands/environment-settings.ts';
import { LogTail } from '../commands/logs.ts';
import { timeOf } from '../commands/webhook-deliveries.ts';
import { countOf } from './parse.ts';

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

test('times before now', () => {
  const now = Date.parse('2026-11-15T12:00:00Z');
  assert.equal(timeOf('90m', now), '2026-11-15T10:30:00.000Z');
  assert.equal(timeOf('2026-11-14', now), '2026-11-14T00:00:00.000Z');
  assert.throws(() => timeOf('yesterday', now), /not a time/);
  assert.throws(() => timeOf(undefined, now), /missing/);
});

test('following logs: lines of one millisecond that come later are not lost, and none comes twice', () => {
  const line = (ms: number, text: string) => ({
    at: new Date(ms).toISOString(),
    instance: 'i',
    stream: 'stdout' as const,
    text,
  });
  const tail = new LogTail();
  assert.equal(tail.since, undefined);
  assert.equal(tail.fresh([line(1, 'a'), line(2, 'b')]).length, 2);
  assert.equal(tail.since, new Date(1).toISOString());
  assert.deepEqual(
    tail.fresh([line(2, 'b'), line(2, 'c'), line(3, 'd')]).map(({ text }) => text),
    ['c', 'd'],
  );
  assert.deepEqual(tail.fresh([line(3, 'd')]), []);
  assert.deepEqual(tail.fresh([]), []);
});
