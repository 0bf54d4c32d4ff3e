import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SluiceError } from './error.ts';
import { type Attempted, delayMs, isUncertain, mayRetry } from './retry.ts';

const error = (code: string, status = 0, cause?: unknown) => new SluiceError({ code, status, message: code, cause });
const failures = {
  refused: error('network', 0, { cause: { code: 'ECONNREFUSED' } }),
  cut: error('network', 0, { cause: { code: 'UND_ERR_SOCKET' } }),
  slow: error('timeout'),
  calledOff: error('aborted'),
  limited: error('rate_limited', 429),
  stopping: error('shutting_down', 503),
  fault: error('internal_error', 500),
  proxy: error('unexpected_answer', 502),
  inFlight: error('idempotency_in_flight', 409),
  conflict: error('slug_taken', 409),
  missing: error('project_not_found', 404),
  html: error('unexpected_answer', 200),
};
type Failure = keyof typeof failures;

const always: Failure[] = ['refused', 'limited', 'stopping', 'inFlight'];
const repeatable: Failure[] = [...always, 'cut', 'slow', 'fault', 'proxy'];
const asks: [string, Attempted, Failure[]][] = [
  ['GET', { method: 'GET', idempotencyKey: undefined, ifMatch: undefined }, repeatable],
  ['POST with a key', { method: 'POST', idempotencyKey: 'k', ifMatch: undefined }, repeatable],
  ['POST without', { method: 'POST', idempotencyKey: undefined, ifMatch: undefined }, always],
  ['PATCH', { method: 'PATCH', idempotencyKey: undefined, ifMatch: undefined }, always],
  ['PATCH of a version', { method: 'PATCH', idempotencyKey: undefined, ifMatch: '"1"' }, repeatable],
  ['DELETE', { method: 'DELETE', idempotencyKey: undefined, ifMatch: undefined }, always],
  ['DELETE of a version', { method: 'DELETE', idempotencyKey: undefined, ifMatch: '"1"' }, repeatable],
];

for (const [name, attempted, expected] of asks) {
  test(`${name} is tried again after ${expected.join(', ')}`, () => {
    const retried = (Object.keys(failures) as Failure[]).filter((failure) => mayRetry(attempted, failures[failure]));
    assert.deepEqual(retried.toSorted(), expected.toSorted());
  });
}

test('only a lost answer leaves it open whether something was done', () => {
  const open = (Object.keys(failures) as Failure[]).filter((failure) => isUncertain(failures[failure]));
  assert.deepEqual(open, ['cut', 'slow', 'fault', 'proxy']);
});

test('waiting grows, at random, up to eight seconds; what the service says is waited for in full', () => {
  assert.deepEqual(
    [0, 1, 2, 3, 9].map((attempt) => delayMs(attempt, null, 1)),
    [250, 500, 1000, 2000, 8000],
  );
  assert.equal(delayMs(3, null, 0), 0);
  assert.equal(delayMs(0, 7, 0), 7000);
  assert.ok(delayMs(0, 7, 0.99) >= 7000);
});
