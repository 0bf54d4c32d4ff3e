// What one client, or one account, may take of what all share.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedApp } from '../../helpers/shared-app.ts';

const app = sharedApp({ env: { SLUICE_PROJECTS_PER_ACCOUNT: '3', SLUICE_TRUSTED_PROXIES: '127.0.0.1/32' } });

test('an account has at most as many projects as the setting says', async () => {
  const ids: string[] = [];
  for (let count = 0; count < 3; count++) ids.push(await app.newProject());
  const refused = await app.call('POST', '/v1/projects', { body: { name: 'One more' } });
  assert.equal(refused.status, 422);
  assert.equal(refused.body.error.code, 'quota_exceeded');
  assert.deepEqual(refused.body.error.details, [{ path: 'projects', message: 'at most 3' }]);
  assert.equal((await app.call('DELETE', `/v1/projects/${ids[0]}`)).status, 204);
  assert.equal((await app.call('POST', '/v1/projects', { body: { name: 'One more' } })).status, 201);
});

test('not even for requests that come at once', async () => {
  const { body } = await app.call('GET', '/v1/projects');
  for (const { id } of body.data) await app.call('DELETE', `/v1/projects/${id}`);
  const create = (n: number) => app.call('POST', '/v1/projects', { body: { name: `At once ${n}` } });
  const statuses = (await Promise.all(Array.from({ length: 12 }, (_, n) => create(n)))).map(({ status }) => status);
  assert.deepEqual(statuses.toSorted(), [201, 201, 201, ...Array(9).fill(422)]);
});

test('all addresses of one IPv6 network share the budget of requests without a token', async () => {
  const ask = async (address: string) => {
    const headers = { 'x-forwarded-for': address };
    return (await app.call('GET', '/v1/token', { token: null, headers })).status;
  };
  const statuses = new Set<number>();
  for (let host = 1; host <= 70; host++) statuses.add(await ask(`2001:db8:1:2::${host.toString(16)}`));
  assert.deepEqual(statuses, new Set([401, 429]));
  assert.equal(await ask('2001:db8:1:2:ffff:ffff:ffff:ffff'), 429);
  assert.equal(await ask('2001:db8:1:3::1'), 401);
  assert.equal(await ask('198.51.100.1'), 401);
});
