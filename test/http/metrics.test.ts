// Who gets the metrics.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
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
