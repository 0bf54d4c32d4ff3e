import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EngineEnd, EngineInstance } from '../../engines/engine.ts';
import { failureOf, howItEnded } from './why-ended.ts';

const nowMs = 1_000_000;
const labels = { id: 'i', project: 'p', environment: 'e', revision: 1 };

const ended = (exitCode: number | null, end?: Partial<EngineEnd>): EngineInstance => ({
  ...{ ...labels, state: 'exited', address: null, exitCode },
  ...(end && { ended: { at: nowMs - 10, reason: 'exited', memoryLimitMb: null, ...end } }),
});

test('what the engine says of an end becomes its reason, time and code', () => {
  const { message, ...how } = howItEnded(ended(3, {}), nowMs);
  assert.deepEqual(how, { at: nowMs - 10, reason: 'exited', exitCode: 3 });
  assert.match(message, /^An instance ended with exit code 3\./);
  assert.match(howItEnded(ended(137, { reason: 'killed' }), nowMs).message, /killed from outside \(exit code 137\)/);
  assert.match(howItEnded(ended(0, {}), nowMs).message, /has to go on running/);
});

test('an engine that says nothing, or whose clock is ahead, gives now', () => {
  assert.equal(howItEnded(ended(null), nowMs).at, nowMs);
  assert.equal(howItEnded(ended(1, { at: nowMs + 5000 }), nowMs).at, nowMs);
});

test('out of memory is a failure of its own, with the limit; all others are crashes', () => {
  const end = howItEnded(ended(137, { reason: 'out_of_memory', memoryLimitMb: 256 }), nowMs);
  const { code, message } = failureOf(end);
  assert.equal(code, 'out_of_memory');
  assert.match(message, /reached its limit of 256 MB \(peak 256 MB\)\..*resources\.memory_mb/);
  assert.equal(failureOf(howItEnded(ended(1, {}), nowMs)).code, 'crashed');
});
