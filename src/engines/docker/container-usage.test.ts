import assert from 'node:assert/strict';
import { test } from 'node:test';
import { usageOf } from './container-usage.ts';

const cpu_stats = { cpu_usage: { total_usage: 1_234_567_890 } };

test('memory is without files that are only cached, by either version of cgroups', () => {
  const used = { memoryBytes: 70, cpuMs: 1235 };
  assert.deepEqual(usageOf({ cpu_stats, memory_stats: { usage: 100, stats: { inactive_file: 30 } } }), used);
  assert.deepEqual(usageOf({ cpu_stats, memory_stats: { usage: 100, stats: { total_inactive_file: 30 } } }), used);
  assert.equal(usageOf({ cpu_stats, memory_stats: { usage: 100 } })?.memoryBytes, 100);
});

test('a container that has ended uses nothing that could be said', () => {
  assert.equal(usageOf({ cpu_stats, memory_stats: {} }), null);
  assert.equal(usageOf({ memory_stats: { usage: 1 } }), null);
});
