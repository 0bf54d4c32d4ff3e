// A stream ends with its token: at once when that is revoked, in whichever process, and when it expires.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config.ts';
import { onPostgres } from '../../helpers/app.ts';
import { Follower } from '../../helpers/follower.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { until } from '../../helpers/wait.ts';

let aheadMs = 0;
const t = sharedApp({ clock: { now: () => Date.now() + aheadMs } });

const newToken = async (body: object = {}) =>
  (await t.call('POST', '/v1/tokens', { body: { name: 'follower', scopes: ['events:read', 'tokens:write'], ...body } }))
    .body as { id: string; token: string };
/** Much sooner than the next heartbeat, at which the token was checked before. */
const soonMs = 8000;
const endsSoon = (follower: Follower) => until('the end of the stream', () => follower.ended, soonMs);

test('revoked: the stream ends, also one with hints, and those of tokens that go with it; others stay', async () => {
  const parent = await newToken();
  const body = { name: 'child', scopes: ['events:read'] };
  const child = (await t.call('POST', '/v1/tokens', { token: parent.token, body })).body;
  const gone = [
    await Follower.open(t.url, { token: parent.token, query: '?changes=true' }),
    await Follower.open(t.url, { token: child.token }),
  ];
  const other = await Follower.open(t.url, { token: (await newToken()).token, query: '?changes=true' });
  assert.equal((await t.call('DELETE', `/v1/tokens/${parent.id}?cascade=true`)).status, 204);
  for (const follower of gone) await endsSoon(follower);
  await until('a hint', () => other.hints.length > 0);
  assert.equal(other.ended, false);
  other.close();
});

test('expired: the stream ends within moments', async () => {
  const { token } = await newToken({ expires_at: new Date(Date.now() + aheadMs + 3600_000).toISOString() });
  const follower = await Follower.open(t.url, { token });
  aheadMs += 3600_001;
  await endsSoon(follower);
});

if (onPostgres) {
  test('revoked in one process: the stream of another ends', async () => {
    const other = await createApp(readConfig(t.env, false), { standinInProcess: true, log: t.app.log });
    try {
      const { id, token } = await newToken();
      const follower = await Follower.open(other.apiUrl(), { token });
      assert.equal((await t.call('DELETE', `/v1/tokens/${id}`)).status, 204);
      await endsSoon(follower);
    } finally {
      await other.stop();
    }
  });
}
