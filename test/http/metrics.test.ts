// Who gets the metrics.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { keepFor, metricsRefusal } from '../../src/http/service-pages.ts';
import { parseRange } from '../../src/lib/address.ts';
import { sharedApp } from '../helpers/shared-app.ts';

const token = 'metrics-token-0123456789';

describe('without SLUICE_METRICS_TOKEN', () => {
  const app = sharedApp({ env: { SLUICE_TRUSTED_PROXIES: '127.0.0.1/32' } });

  test('those who ask the service directly get them', async () => {
    const { status, body } = await app.call('GET', '/metrics', { token: null });
    assert.equal(status, 200);
    assert.match(body, /process_resident_memory_bytes/);
  });

  test('those who come through a trusted proxy do not', async () => {
    const headers = { 'x-forwarded-for': '198.51.100.7' };
    for (const path of ['/metrics', '/metrics?', '/metrics?a=b']) {
      const { status, body } = await app.call('GET', path, { token: null, headers });
      assert.equal(status, 403, path);
      assert.doesNotMatch(body, /prj_|process_/);
    }
  });
});

describe('with SLUICE_METRICS_TOKEN', () => {
  const app = sharedApp({ env: { SLUICE_METRICS_TOKEN: token } });

  test('only those who have it get them', async () => {
    for (const given of [null, 'wrong', `${token}x`, token.slice(1)]) {
      const { status, headers } = await app.call('GET', '/metrics', { token: given });
      assert.equal(status, 401, String(given));
      assert.equal(headers.get('www-authenticate'), 'Bearer');
    }
    assert.equal((await app.call('GET', '/metrics')).status, 401, 'a token of the API is another one');
    assert.equal((await app.call('GET', '/metrics', { token })).status, 200);
  });
});

test('however often they are asked for, they are computed a tenth of the time', async () => {
  let nowMs = 0;
  let computed = 0;
  const read = keepFor(
    async () => {
      nowMs += 50;
      return String(++computed);
    },
    () => nowMs,
  );
  for (let n = 0; n < 1000; n++, nowMs++) await read();
  assert.ok(computed <= 3, `${computed} times in 1 s`);
  const failing = keepFor(async () => Promise.reject(new Error(`away ${++computed}`)));
  await assert.rejects(failing());
  await assert.rejects(failing(), 'a failure is not kept');
});

test('without a token they are for this machine, unless a setting opens them', () => {
  const closed = { token: null, isOpen: false, trustedProxies: [parseRange('10.0.0.0/8')!] };
  const statusFor = (remote: string, access = closed, headers = {}) =>
    metricsRefusal({ headers, remote }, access)?.status ?? 200;
  assert.deepEqual(
    ['127.0.0.1', '::1', '::ffff:127.0.0.1'].map((remote) => statusFor(remote)),
    [200, 200, 200],
  );
  assert.deepEqual(
    ['192.0.2.7', '2001:db8::1', ''].map((remote) => statusFor(remote)),
    [403, 403, 403],
  );
  const open = { ...closed, isOpen: true };
  assert.equal(statusFor('192.0.2.7', open), 200);
  assert.equal(statusFor('10.1.2.3', open, { 'x-forwarded-for': '192.0.2.7' }), 403, 'through a trusted proxy');
});
