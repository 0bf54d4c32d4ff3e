// A clock that is wrong for a while deletes no history.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { readConfig } from '../../../src/config.ts';
import { RetentionClock } from '../../../src/db/retention-clock.ts';
import { openStore, type Store } from '../../../src/store.ts';
import { isolatedEnv } from '../../helpers/app.ts';
import { emit } from '../../helpers/emit.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { until } from '../../helpers/wait.ts';

const hourMs = 3600_000;
const dayMs = 24 * hourMs;
const yearMs = 365 * dayMs;
const startMs = Date.parse('2026-01-01T00:00:00Z');

let offMs = 0;
const t = sharedApp({ clock: { now: () => Date.now() + offMs, monotonic: () => performance.now() } });

describe('the time by which things are old', () => {
  let [wallMs, monotonicMs] = [startMs, 0];
  const clock = { now: () => wallMs, monotonic: () => monotonicMs };
  const pass = (ms: number) => {
    wallMs += ms;
    monotonicMs += ms;
  };
  // A database that no service uses at the same time.
  let isolated: Awaited<ReturnType<typeof isolatedEnv>>;
  let store: Store;
  before(async () => {
    isolated = await isolatedEnv();
    store = await openStore(readConfig(isolated.env, false), () => {});
  });
  after(async () => {
    await store.close();
    await isolated.clean();
  });
  beforeEach(async () => {
    await store.db.deleteFrom('meta').where('name', '=', 'retention_time').execute();
    [wallMs, monotonicMs] = [startMs, 0];
  });
  const open = () => new RetentionClock(store.db, clock);

  test('is the clock’s as long as that does not jump', async () => {
    const retention = open();
    for (let n = 0; n < 5; n++) {
      assert.equal(await retention.now(), startMs + n * hourMs);
      pass(hourMs);
    }
  });

  test('goes on from where it was while the clock is ahead, and is right again with it', async () => {
    const retention = open();
    await retention.now();
    wallMs += yearMs;
    for (let n = 1; n < 24; n++) {
      pass(hourMs);
      assert.equal(await retention.now(), startMs + n * hourMs);
    }
    wallMs -= yearMs;
    pass(hourMs);
    assert.equal(await retention.now(), startMs + dayMs);
  });

  test('believes a clock that goes on for a day', async () => {
    const retention = open();
    await retention.now();
    wallMs += yearMs;
    await retention.now();
    pass(dayMs - 1);
    assert.equal(await retention.now(), startMs + dayMs - 1);
    pass(1);
    assert.equal(await retention.now(), startMs + yearMs + dayMs);
  });

  test('a process that starts with a wrong clock goes on from what is stored', async () => {
    await open().now();
    wallMs += yearMs;
    const restarted = open();
    assert.equal(await restarted.now(), startMs);
    pass(hourMs);
    assert.equal(await restarted.now(), startMs + hourMs);
  });

  test('is never later than the clock', async () => {
    const retention = open();
    await retention.now();
    wallMs -= yearMs;
    assert.equal(await retention.now(), startMs - yearMs);
  });
});

test('events stay when the clock goes a year ahead', async () => {
  const { db } = t.app.store;
  const project = await t.newProject();
  for (let n = 0; n < 3; n++) await emit(db, project);
  /** The removal of a webhook makes the sweeper run. */
  const sweep = async () => {
    const { body } = await t.call('POST', '/v1/webhooks', { body: { url: 'http://127.0.0.1:9/', events: ['*'] } });
    await t.call('DELETE', `/v1/webhooks/${body.id}`);
    const row = db.selectFrom('webhook').select('id').where('id', '=', body.id);
    await until('the sweep', async () => (await row.executeTakeFirst()) === undefined);
  };
  await sweep();
  offMs = yearMs;
  // What a sweep removes last is gone by the end of the next one.
  for (let n = 0; n < 2; n++) await sweep();
  offMs = 0;
  const rows = await db.selectFrom('event').select('sequence').where('project_id', '=', project).execute();
  assert.deepEqual(rows.map(({ sequence }) => sequence).sort(), [1, 2, 3]);
});
