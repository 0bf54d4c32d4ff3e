import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EngineEnd, EngineInstance } from '../../engines/engine.ts';
import { failureOf, howItEnded, notHealthy } from './instance-failures.ts';

const refused = { ok: false, fault: 'no_connection', message: 'connect ECONNREFUSED' } as const;
const slow = { ok: false, fault: 'no_answer', message: '/health: no answer in time' } as const;
const seen = (open: number[], loopback: number[] = [], exposed: number[] = []) => ({ open, loopback, exposed });

test('a bad answer is a failed health check, whatever it listens on', () => {
  const check = { ok: false, fault: 'bad_answer', message: '/ answered 500' } as const;
  assert.deepEqual(notHealthy(check, 8080, seen([])), { code: 'health_check_failed', message: '/ answered 500' });
});

test('nothing listens on the port: what it listens on, and what its image exposes', () => {
  const { code, message } = notHealthy(refused, 8080, seen([3000], [9229], [3000]));
  assert.equal(code, 'port_not_listening');
  assert.match(message, /nothing listens on port 8080\. It listens on ports 3000, 9229; its image exposes port 3000\./);
  assert.match(message, /variable PORT, or set the port of the environment\.$/);
  assert.match(notHealthy(refused, 8080, seen([])).message, /It listens on no port; its image exposes none\./);
});

test('a program that listens on loopback alone is told to listen on every address', () => {
  assert.match(notHealthy(refused, 8080, seen([], [8080])).message, /loopback address alone.*0\.0\.0\.0/);
});

test('a check that passed proves nothing where nothing listens', () => {
  assert.match(notHealthy({ ok: true }, 8080, seen([3000])).message, /nothing listens on port 8080/);
  assert.equal(notHealthy({ ok: true }, 8080, seen([8080])).code, 'start_timeout');
  assert.equal(notHealthy({ ok: true }, 8080, null).code, 'start_timeout');
});

test('where the engine cannot tell, a refused connection is enough, and one that is only slow is not', () => {
  assert.equal(notHealthy(refused, 8080, null).code, 'port_not_listening');
  assert.equal(notHealthy(slow, 8080, null).code, 'start_timeout');
});

test('one that listens and does not answer: start_timeout with what the last check said', () => {
  const { code, message } = notHealthy(slow, 8080, seen([8080]));
  assert.equal(code, 'start_timeout');
  assert.match(message, /The last check said: \/health: no answer in time\..*start_timeout_s/);
  assert.equal(notHealthy(null, null, null).code, 'start_timeout');
});

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
