// What a token made does not outlive it, and nobody revokes a token that can do more.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { adminToken } from '../../helpers/app.ts';
import { cli } from '../../helpers/cli.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const t = sharedApp();

const make = async (body: object, token = adminToken) => {
  const made = await t.call('POST', '/v1/tokens', { token, body: { name: 'x', scopes: ['*'], ...body } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return made.body as { id: string; token: string; parent_id: string; expires_at: string | null };
};
const revoke = (id: string, { token = adminToken, query = '' } = {}) =>
  t.call('DELETE', `/v1/tokens/${id}${query}`, { token });
const works = async ({ token }: { token: string }) => (await t.call('GET', '/v1/token', { token })).status === 200;
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

describe('expiry', () => {
  test('a token made by one that expires expires no later, whatever it asks for, and so do those it makes', async () => {
    const expires_at = inMs(3600_000);
    const parent = await make({ expires_at });
    for (const asked of [undefined, null, inMs(7200_000)]) {
      const child = await make(asked === undefined ? {} : { expires_at: asked }, parent.token);
      assert.equal(child.expires_at, expires_at, `asked for ${asked}`);
      assert.equal((await make({ expires_at: null }, child.token)).expires_at, expires_at);
    }
    const sooner = inMs(60_000);
    assert.equal((await make({ expires_at: sooner }, parent.token)).expires_at, sooner);
  });

  test('a token that never expires makes others that never do', async () => {
    assert.equal((await make({}, (await make({})).token)).expires_at, null);
  });
});

describe('parents', () => {
  test('a token names the one that made it', async () => {
    const me = (await t.call('GET', '/v1/token')).body;
    assert.equal(me.parent_id, null);
    const parent = await make({});
    const child = await make({}, parent.token);
    assert.deepEqual([parent.parent_id, child.parent_id], [me.id, parent.id]);
    assert.equal((await t.call('GET', `/v1/tokens/${child.id}`)).body.parent_id, parent.id);
  });

  test('revoking leaves what the token made; with cascade=true all of it goes, below revoked ones too', async () => {
    const parent = await make({});
    const [child, other] = [await make({}, parent.token), await make({}, parent.token)];
    const grandchild = await make({}, child.token);
    assert.equal((await revoke(child.id)).status, 204);
    assert.deepEqual([await works(child), await works(grandchild)], [false, true]);
    assert.equal((await revoke(parent.id)).status, 204);
    assert.equal(await works(other), true);
    assert.equal((await revoke(parent.id, { query: '?cascade=true' })).status, 204);
    for (const token of [parent, child, other, grandchild]) assert.equal(await works(token), false);
    const actions = (await t.call('GET', '/v1/audit-log?limit=10')).body.data as { action: string; resource: string }[];
    for (const { id } of [other, grandchild])
      assert.ok(actions.some(({ action, resource }) => action === 'tokens.revoke' && resource === `/tokens/${id}`));
  });

  test('while a token and all it made are revoked, it makes none that stays', async () => {
    for (let round = 0; round < 5; round++) {
      const parent = await make({});
      const makes = Array.from({ length: 8 }, () =>
        t.call('POST', '/v1/tokens', { token: parent.token, body: { name: 'late', scopes: ['*'] } }),
      );
      const [gone, ...made] = await Promise.all([revoke(parent.id, { query: '?cascade=true' }), ...makes]);
      assert.equal(gone.status, 204);
      for (const { status, body } of made) {
        if (status === 201) assert.equal(await works(body), false);
        else assert.equal(body.error.code, 'token_revoked');
      }
    }
  });

  test('sluice tokens revoke --cascade does the same', async () => {
    const parent = await make({});
    const child = await make({}, parent.token);
    const env = { ...t.env, SLUICE_API_URL: t.url, SLUICE_TOKEN: adminToken };
    const { code, stdout, stderr } = await cli(['tokens', 'revoke', parent.id, '--cascade'], env);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /revoked, and all tokens that it made/);
    assert.equal(await works(child), false);
  });
});

describe('no revoking upwards', () => {
  test('a token cannot revoke one that can do more', async () => {
    const everything = await make({});
    const narrow = await make({ scopes: ['tokens:write', 'projects:read'] });
    for (const query of ['', '?cascade=true']) {
      const refused = await revoke(everything.id, { token: narrow.token, query });
      assert.deepEqual([refused.status, refused.body.error.code], [403, 'insufficient_scope']);
    }
    assert.equal((await revoke(narrow.parent_id, { token: narrow.token })).status, 403);
    assert.equal(await works(everything), true);
    const reader = await make({ scopes: ['projects:write'] });
    const { status, body } = await revoke(reader.id, { token: narrow.token });
    assert.equal(status, 403);
    assert.deepEqual(body.error.details, [{ path: 'scopes', message: 'projects:write' }]);
  });

  test('it can revoke one that can do no more, and itself', async () => {
    const narrow = await make({ scopes: ['tokens:write', 'projects:read'] });
    const equal = await make({ scopes: ['projects:read'] });
    assert.equal((await revoke(equal.id, { token: narrow.token })).status, 204);
    assert.equal((await revoke(narrow.id, { token: narrow.token })).status, 204);
    assert.equal(await works(narrow), false);
  });
});
