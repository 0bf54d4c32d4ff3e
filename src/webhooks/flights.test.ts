import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Claimed } from './delivery-queue.ts';
import { crowdedAfter, type Flight, Flights } from './flights.ts';

const claim = (webhook_id: string, n: number, more: Partial<Claimed> = {}): Claimed => ({
  id: `dlv_${webhook_id}_${n}`,
  account_id: 'acc',
  webhook_id,
  event_id: `evt_${n}`,
  type: 'alert.fired',
  attempts: 0,
  tried: 0,
  lease: 'one.1',
  body: '{}',
  url: 'http://127.0.0.1:9/',
  ordering: 'none',
  secret_sealed: '',
  old_secret_sealed: null,
  old_secret_until: null,
  failures: 0,
  ...more,
});
const claims = (webhookId: string, count: number, more: Partial<Claimed> = {}) =>
  Array.from({ length: count }, (_, n) => claim(webhookId, n, more));

function beginAll(flights: Flights, webhookId: string, nowMs: number): Flight[] {
  const begun: Flight[] = [];
  for (let flight = flights.begin(webhookId, nowMs); flight; flight = flights.begin(webhookId, nowMs))
    begun.push(flight);
  return begun;
}

test('32 are in flight, the others wait, and each that ends makes room for the next, in order', () => {
  const flights = new Flights();
  for (const claimed of claims('a', 40)) flights.add(claimed, 0);
  const begun = beginAll(flights, 'a', 10);
  assert.deepEqual([begun.length, flights.count, flights.taken], [32, 32, 40]);
  assert.equal(flights.end(begun[5]!), true);
  assert.equal(flights.end(begun[5]!), false, 'only once');
  assert.deepEqual(
    beginAll(flights, 'a', 20).map(({ claimed }) => claimed.id),
    ['dlv_a_32'],
  );
  assert.equal(flights.takenOf('a'), 39);
  assert.equal(flights.takenOf('b'), 0);
});

test('an endpoint that fails has two in flight, one with strict order has one', () => {
  const flights = new Flights();
  for (const claimed of claims('failing', 5, { failures: 3 })) flights.add(claimed, 0);
  for (const claimed of claims('strict', 5, { ordering: 'strict' })) flights.add(claimed, 0);
  assert.equal(beginAll(flights, 'failing', 0).length, 2);
  assert.equal(beginAll(flights, 'strict', 0).length, 1);
});

test('what has waited for too long is not sent and is given up', () => {
  const flights = new Flights();
  for (const claimed of claims('a', 34)) flights.add(claimed, 0);
  const [first] = beginAll(flights, 'a', 0);
  flights.end(first!);
  assert.equal(flights.giveUpStale(500).length, 0);
  assert.equal(flights.begin('a', 501), undefined);
  assert.deepEqual(
    flights.giveUpStale(501).map(({ id }) => id),
    ['dlv_a_32', 'dlv_a_33'],
  );
  assert.deepEqual([flights.count, flights.taken], [31, 31]);
});

test('after everything was given up, a late answer does not count', () => {
  const flights = new Flights();
  for (const claimed of claims('a', 33)) flights.add(claimed, 0);
  const [first] = beginAll(flights, 'a', 0);
  assert.equal(flights.giveUpAll().length, 33);
  assert.equal(flights.end(first!), false);
  assert.deepEqual([flights.count, flights.taken, flights.loads().size], [0, 0, 0]);
});

test('an endpoint is crowded if it got as many as it could take, or could take none', () => {
  const flights = new Flights();
  for (const claimed of [...claims('full', 64), ...claims('some', 10)]) flights.add(claimed, 0);
  for (const id of ['full', 'some']) beginAll(flights, id, 0);
  const loads = flights.loads();
  assert.deepEqual([...crowdedAfter(loads, [], 100)], [['full', 64]]);
  assert.deepEqual([...crowdedAfter(loads, claims('some', 53), 100)], [['full', 64]]);
  assert.deepEqual(
    [...crowdedAfter(loads, [...claims('some', 54), ...claims('new', 64)], 100)],
    [
      ['full', 64],
      ['some', 64],
      ['new', 64],
    ],
  );
  assert.deepEqual([...crowdedAfter(new Map(), claims('failing', 2, { failures: 1 }), 100)], [['failing', 2]]);
});
