// The rate limits of the specification, on a clock that the tests move.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startApp } from '../../helpers/app.ts';
import { cli } from '../../helpers/cli.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const t = sharedApp();

describe('spec: limits', () => {
  test('600 requests a minute per token, reported on every response, 429 with Retry-After', async () => {
    let nowMs = Math.ceil(Date.now() / 60_000) * 60_000;
    const limited = await startApp({ clock: { now: () => nowMs } });
    const statuses = { 200: 0, 429: 0 } as Record<number, number>;
    const results = await Promise.all(Array.from({ length: 650 }, () => limited.call('GET', '/v1/token')));
    for (const { status } of results) statuses[status]!++;
    assert.deepEqual(statuses, { 200: 600, 429: 50 });
    const remaining = results
      .filter((r) => r.status === 200)
      .map((r) => Number(r.headers.get('x-ratelimit-remaining')));
    assert.deepEqual(
      remaining.sort((a, b) => a - b),
      Array.from({ length: 600 }, (_, i) => i),
    );
    for (const { headers } of results) {
      assert.equal(headers.get('x-ratelimit-limit'), '600');
      assert.equal(Number(headers.get('x-ratelimit-reset')), nowMs / 1000 + 60);
      assert.match(headers.get('ratelimit')!, /^"default";r=\d+;t=60$/);
      assert.equal(headers.get('ratelimit-policy'), '"default";q=600;w=60');
    }
    const refused = results.find((r) => r.status === 429)!;
    assert.equal(refused.body.error.code, 'rate_limited');
    const wait = Number(refused.headers.get('retry-after'));
    nowMs += (wait - 1) * 1000;
    assert.equal((await limited.call('GET', '/v1/token')).status, 429);
    nowMs += 1000;
    assert.equal((await limited.call('GET', '/v1/token')).status, 200);
    await limited.stop();
  });

  test('requests without a valid token are limited per address, and do not use up a token', async () => {
    const limited = await startApp({ clock: { now: () => 1_800_000_000_000 } });
    const results = await Promise.all(
      Array.from({ length: 61 }, () => limited.call('GET', '/v1/token', { token: 'no' })),
    );
    assert.deepEqual(results.map((r) => r.status).sort(), [...Array(60).fill(401), 429]);
    for (const { headers } of results) assert.equal(headers.get('x-ratelimit-limit'), '60');
    assert.equal((await limited.call('GET', '/v1/token')).status, 200);
    await limited.stop();
  });

  test('errors carry the rate limit headers too', async () => {
    const errors = [
      await t.call('GET', '/v1/nothing'),
      await t.call('PUT', '/v1/projects'),
      await t.call('POST', '/v1/projects', { body: '{' }),
      await t.call('GET', '/v1/projects?token=1'),
      await t.call('GET', '/v1/projects', { token: null }),
    ];
    for (const { headers, status } of errors) {
      assert.ok(status >= 400);
      for (const name of ['limit', 'remaining', 'reset']) assert.match(headers.get(`x-ratelimit-${name}`)!, /^\d+$/);
    }
  });

  test('all tokens of an account together have ten times the limit of one; another account is not concerned', async () => {
    let nowMs = Math.ceil(Date.now() / 60_000) * 60_000;
    const limited = await startApp({ clock: { now: () => nowMs }, tokenLimit: 30 });
    const other = JSON.parse((await cli(['account', 'create', 'Other', '--json'], limited.env)).stdout).token;
    const create = () => limited.call('POST', '/v1/tokens', { body: { name: 'one of many', scopes: ['*'] } });
    const tokens = (await Promise.all(Array.from({ length: 12 }, create))).map(({ body }) => body.token);
    const asked = tokens.flatMap((token) =>
      Array.from({ length: 30 }, () => limited.call('GET', '/v1/token', { token })),
    );
    const results = await Promise.all(asked);
    const refused = results.filter(({ status }) => status === 429);
    assert.equal(refused.length, 12 * 30 - (300 - 12));
    assert.match(refused[0]!.body.error.message, /of this account: 300 a minute over all its tokens/);
    assert.equal(refused[0]!.headers.get('x-ratelimit-limit'), '30', 'as the specification has it');
    assert.match(refused[0]!.headers.get('retry-after')!, /^\d+$/);
    assert.equal((await limited.call('GET', '/v1/token', { token: other })).status, 200);
    nowMs += 120_000;
    assert.equal((await limited.call('GET', '/v1/token', { token: tokens[0] })).status, 200);
    await limited.stop();
  });
});
