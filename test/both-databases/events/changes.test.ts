// Hints in the event stream that something changed, so that a screen that shows it reads it again.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type App, createApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config.ts';
import { call, isolatedEnv, onPostgres } from '../../helpers/app.ts';
import { Follower } from '../../helpers/follower.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';

let isolated: Awaited<ReturnType<typeof isolatedEnv>>;
let apps: App[];
before(async () => {
  isolated = await isolatedEnv();
  const start = () => createApp(readConfig(isolated.env, false), { tokenLimit: 1_000_000 });
  apps = onPostgres ? [await start(), await start()] : [await start()];
});
after(async () => {
  for (const app of apps) await app.stop();
  await isolated.clean();
});

describe('GET /events/stream?changes=true', () => {
  test('a hint for every step of a deployment and every changed setting, also from another process', async () => {
    const shop = await Shop.open(apps[0]!.apiUrl());
    const follower = await Follower.open(apps.at(-1)!.apiUrl(), { query: '?changes=true' });
    const before = follower.hints.length;
    const { id } = await shop.deploy('registry.example/shop:1');
    const done = await shop.reaches(id, 'succeeded');
    const ofShop = () =>
      follower.hints.filter((hint) => hint.project_id === shop.project && hint.environment === 'production');
    await until('a hint for each step', () => ofShop().length >= done.timeline.length - 1 || undefined);
    assert.ok(follower.hints.length > before);
    const count = ofShop().length;
    await shop.set({ replicas: 2 });
    await until('a hint for the change', () => ofShop().length > count || undefined);
    follower.close();
  });

  test('no hints without changes=true, and only of projects that the token may read', async () => {
    const url = apps[0]!.apiUrl();
    const [mine, other] = [await Shop.open(url), await Shop.open(url)];
    const { body } = await call(url, 'POST', '/v1/tokens', {
      body: { name: 'bound', scopes: ['events:read'], project_ids: [mine.project] },
    });
    const plain = await Follower.open(url);
    const bound = await Follower.open(url, { query: '?changes=true', token: body.token });
    await other.set({ replicas: 2 });
    await mine.set({ replicas: 2 });
    await until('the own hint', () => bound.hints.length > 0 || undefined);
    assert.ok(bound.hints.every((hint) => hint.project_id === mine.project));
    assert.deepEqual(plain.hints, []);
    plain.close();
    bound.close();
  });

  test('400 for any value but true', async () => {
    const { body } = await call(apps[0]!.apiUrl(), 'GET', '/v1/events/stream?changes=yes');
    assert.equal(body.error.code, 'invalid_request');
  });
});
