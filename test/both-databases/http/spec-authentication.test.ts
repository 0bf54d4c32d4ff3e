// One test per row of the specification's table on authentication, named after the row.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { adminToken, startApp } from '../../helpers/app.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const t = sharedApp();

describe('spec: authentication', () => {
  test('the token is accepted in the header', async () => {
    assert.equal((await t.call('GET', '/v1/projects')).status, 200);
  });

  for (const name of [
    'token',
    'access_token',
    'api_key',
    'apikey',
    'key',
    'auth',
    'authorization',
    'bearer',
    'secret',
  ]) {
    test(`a credential in the query string is 400: ${name}`, async () => {
      for (const query of [`${name}=${adminToken}`, `limit=1&${name.toUpperCase()}=x`, `${name}`, `${name}[]=x`]) {
        const { status, body } = await t.call('GET', `/v1/projects?${query}`, { token: null });
        assert.equal(status, 400, query);
        assert.equal(body.error.code, 'token_in_query');
        assert.ok(!JSON.stringify(body).includes(adminToken));
      }
    });
  }

  test('a credential in the query string is 400 before anything else: unknown path, percent-encoded name', async () => {
    for (const path of ['/v1/nothing?token=x', '/v1/projects?%74oken=x', '/v1/projects?bad=1&api%5Fkey=x']) {
      assert.equal((await t.call('GET', path)).body.error.code, 'token_in_query', path);
    }
  });

  test('a missing token gives 401', async () => {
    const { status, body, headers } = await t.call('GET', '/v1/projects', { token: null });
    assert.equal(status, 401);
    assert.equal(body.error.code, 'token_missing');
    assert.equal(headers.get('www-authenticate'), 'Bearer');
  });

  test('a token of another form or service gives 401', async () => {
    for (const token of ['nonsense', 'slc_0000000000000000000000000000000000', 'a b']) {
      const { status, body, headers } = await t.call('GET', '/v1/projects', { token });
      assert.equal(status, 401);
      assert.equal(body.error.code, 'token_invalid');
      assert.match(headers.get('www-authenticate')!, /^Bearer /);
    }
    const basic = await t.call('GET', '/v1/projects', { token: null, headers: { authorization: 'Basic YTpi' } });
    assert.equal(basic.body.error.code, 'token_invalid');
  });

  test('an expired token gives 401', async () => {
    let offset = 0;
    const later = await startApp({ clock: { now: () => Date.now() + offset } });
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const { body } = await later.call('POST', '/v1/tokens', { body: { name: 'x', scopes: ['*'], expires_at } });
    assert.equal((await later.call('GET', '/v1/token', { token: body.token })).status, 200);
    offset = 61_000;
    const { status, body: refused } = await later.call('GET', '/v1/token', { token: body.token });
    assert.equal(status, 401);
    assert.equal(refused.error.code, 'token_expired');
    await later.stop();
  });

  test('a revoked token gives 401', async () => {
    const { body } = await t.call('POST', '/v1/tokens', { body: { name: 'x', scopes: ['*'] } });
    assert.equal((await t.call('DELETE', `/v1/tokens/${body.id}`)).status, 204);
    const { status, body: refused } = await t.call('GET', '/v1/token', { token: body.token });
    assert.equal(status, 401);
    assert.equal(refused.error.code, 'token_revoked');
  });

  test('a token lacking the needed scope gives 403', async () => {
    const { body } = await t.call('POST', '/v1/tokens', { body: { name: 'x', scopes: ['projects:write'] } });
    const { status, body: refused } = await t.call('GET', '/v1/projects', { token: body.token });
    assert.equal(status, 403, ':write does not imply :read');
    assert.equal(refused.error.code, 'insufficient_scope');
    assert.deepEqual(refused.error.details, [{ path: 'scope', message: 'projects:read' }]);
  });
});
