import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Engine } from '../../engines/engine.ts';
import type { RegionState } from '../../regions/regions.ts';
import { EngineLists } from './engine-lists.ts';

/** An engine that takes so long to list what it runs. */
function setUp(takesMs: number) {
  const seen = { nowMs: 0, asked: 0 };
  const lists = new EngineLists({ now: () => seen.nowMs }, async () => {});
  const engine = {
    async list() {
      seen.asked++;
      seen.nowMs += takesMs;
      return [];
    },
  } as Partial<Engine> as Engine;
  const region: RegionState = { name: 'local', engine, available: true, lastCheckedAt: null };
  const askAt = async (ms: number) => {
    seen.nowMs = ms;
    await lists.of(region);
    return seen.asked;
  };
  return { lists, askAt };
}

test('passes at about the same time share a list; a long list is shared for longer, two seconds at most', async () => {
  const { askAt } = setUp(1);
  assert.deepEqual([await askAt(0), await askAt(149), await askAt(150)], [1, 1, 2]);
  const long = setUp(100);
  assert.deepEqual([await long.askAt(0), await long.askAt(999), await long.askAt(1000)], [1, 1, 2]);
  const endless = setUp(5000);
  assert.deepEqual([await endless.askAt(0), await endless.askAt(5001)], [1, 2]);
});

test('once something has changed the engine is asked again, however long its list is', async () => {
  const { lists, askAt } = setUp(100);
  await askAt(0);
  lists.clear();
  assert.equal(await askAt(101), 2);
});
