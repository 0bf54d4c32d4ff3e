// When the console reads again: after changes, errors, while hidden, at the rate limit. The clock is the test's.
import assert from 'node:assert/strict';
import { beforeEach, mock, test } from 'node:test';
import { CachedRead } from '../../console/src/cached-read.ts';
import { waitUntil } from '../../console/src/wire.ts';
import { SluiceError } from '../../src/client/index.ts';

const tab = { hidden: false };
Object.assign(globalThis, { document: tab });
mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });

/** A read whose requests are answered by the test. */
function open() {
  const requests: PromiseWithResolvers<string>[] = [];
  const entry = new CachedRead<string>();
  const read = () => {
    const request = Promise.withResolvers<string>();
    requests.push(request);
    return request.promise;
  };
  entry.configure(read, {});
  return { entry, requests, read };
}

const passMs = async (ms: number) => {
  mock.timers.tick(ms);
  await new Promise((resolve) => setImmediate(resolve));
};

beforeEach(() => {
  tab.hidden = false;
  waitUntil.set(0);
});

test('reads once for any number of subscribers, and again for the next one after all have left', async () => {
  const { entry, requests } = open();
  const leave = [entry.subscribe(() => {}), entry.subscribe(() => {})];
  await passMs(0);
  assert.equal(requests.length, 1);
  requests[0]!.resolve('a');
  await passMs(0);
  assert.deepEqual(entry.snapshot, { data: 'a', error: undefined, isReading: false });
  for (const each of leave) each();
  entry.invalidate();
  await passMs(1000);
  assert.equal(requests.length, 1, 'not while nothing shows it');
  entry.subscribe(() => {});
  await passMs(0);
  assert.equal(requests.length, 2);
  assert.equal(entry.snapshot.data, 'a', 'the old data is shown meanwhile');
});

test('changes during a read lead to one more read, after the minimum gap', async () => {
  const { entry, requests } = open();
  entry.subscribe(() => {});
  await passMs(0);
  for (let count = 0; count < 5; count++) entry.invalidate();
  await passMs(100);
  assert.equal(requests.length, 1, 'one request at a time');
  requests[0]!.resolve('a');
  await passMs(0);
  await passMs(99);
  assert.equal(requests.length, 1);
  await passMs(1);
  assert.equal(requests.length, 2);
  requests[1]!.resolve('b');
  await passMs(10_000);
  assert.equal(requests.length, 2);
});

test('a transient error keeps the data and is retried ever more slowly; a change is read sooner', async () => {
  const { entry, requests } = open();
  entry.subscribe(() => {});
  await passMs(0);
  requests[0]!.resolve('a');
  await passMs(0);
  entry.invalidate();
  await passMs(200);
  for (const [index, delayMs] of [1000, 2000, 4000].entries()) {
    requests[index + 1]!.reject(new TypeError('fetch failed'));
    await passMs(0);
    assert.equal(entry.snapshot.data, 'a');
    assert.match(entry.snapshot.error!.message, /fetch failed/);
    await passMs(delayMs - 1);
    assert.equal(requests.length, index + 2);
    await passMs(1);
    assert.equal(requests.length, index + 3);
  }
  requests[4]!.reject(new TypeError('fetch failed'));
  await passMs(0);
  entry.invalidate();
  await passMs(200);
  assert.equal(requests.length, 6);
});

test('a final error is not retried', async () => {
  const { entry, requests } = open();
  entry.subscribe(() => {});
  await passMs(0);
  requests[0]!.reject(Object.assign(Object.create(SluiceError.prototype), { status: 404 }));
  await passMs(60_000);
  assert.equal(requests.length, 1);
});

test('a hidden tab waits, and so does everyone while the service asks to', async () => {
  const { entry, requests } = open();
  entry.subscribe(() => {});
  await passMs(0);
  requests[0]!.resolve('a');
  await passMs(1000);
  tab.hidden = true;
  entry.invalidate();
  await passMs(60_000);
  assert.equal(requests.length, 1);
  tab.hidden = false;
  waitUntil.set(Date.now() + 3000);
  entry.invalidate();
  await passMs(2999);
  assert.equal(requests.length, 1);
  await passMs(1);
  assert.equal(requests.length, 2);
});

test('polls as often as the options say', async () => {
  const { entry, requests, read } = open();
  entry.configure(read, { pollMs: (data) => (data === 'running' ? 2000 : null) });
  entry.subscribe(() => {});
  await passMs(0);
  requests[0]!.resolve('running');
  await passMs(0);
  await passMs(2000);
  assert.equal(requests.length, 2);
  requests[1]!.resolve('finished');
  await passMs(60_000);
  assert.equal(requests.length, 2);
});
