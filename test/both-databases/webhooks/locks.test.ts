// Whoever locks several webhooks or deliveries does so in one order: no two transactions wait for each other.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import type { EventKind } from '../../../src/contract/events.ts';
import { insertEvent } from '../../../src/events/outbox.ts';
import { markFailedDue } from '../../../src/webhooks/delivery-queries.ts';
import type { Claimed } from '../../../src/webhooks/delivery-queue.ts';
import { sweepStopped } from '../../../src/webhooks/delivery-sweep.ts';
import { onPostgres } from '../../helpers/app.ts';
import { until } from '../../helpers/wait.ts';
import {
  claim,
  db,
  ids,
  leaseMs,
  newDeliveries,
  newWebhook,
  outcomeOf,
  queue,
  retryAt,
  setUpQueue,
  startMs,
} from './queue-fixture.ts';

setUpQueue();

async function newProject(): Promise<string> {
  const id = ids('prj');
  const times = { created_at: startMs, updated_at: startMs, version: 1 };
  await db
    .insertInto('account')
    .values({ id: 'acc', name: 'acc', created_at: startMs })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute();
  const rest = {
    name: id,
    slug: id,
    description: null,
    labels: '[]',
    next_sequence: 1,
    backlog: 0,
    deleted_at: null,
    ...times,
  };
  await db
    .insertInto('project')
    .values({ id, account_id: 'acc', ...rest })
    .execute();
  return id;
}

/** Some other connection waits for a lock. */
const isAnyoneWaiting = async () => {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
  return Number(rows[0]!.count) > 0;
};

describe('events to several webhooks with a strict order', () => {
  /** Writes these events in one transaction; `between` runs after the first. */
  const write = (projectId: string, kinds: EventKind[], between?: () => Promise<unknown>) =>
    db.transaction().execute(async (tx) => {
      for (const [n, type] of kinds.entries()) {
        if (n === 1) await between?.();
        const event = { type, accountId: 'acc', projectId, data: {} };
        await insertEvent(tx, { ids, clock: { now: () => startMs } }, event);
      }
    });

  test('two transactions with other kinds in another order both commit', async () => {
    const [one, other] = [await newProject(), await newProject()];
    const first = await newWebhook({ ordering: 'strict', events: '["alert.resolved"]' });
    const second = await newWebhook({ ordering: 'strict', events: '["*"]' });
    assert.ok(first < second);
    let done = Promise.resolve();
    await write(one, ['alert.fired', 'alert.resolved'], async () => {
      if (!onPostgres) return;
      done = write(other, ['alert.resolved']);
      await until('the other transaction to wait', isAnyoneWaiting);
    });
    if (!onPostgres) done = write(other, ['alert.resolved']);
    await done;
    const rows = await db
      .selectFrom('delivery')
      .select(['webhook_id', 'position', 'type'])
      .orderBy('position')
      .execute();
    const of = (id: string) =>
      rows.filter((row) => row.webhook_id === id).map(({ position, type }) => [position, type]);
    assert.deepEqual(of(first), [
      [1, 'alert.resolved'],
      [2, 'alert.resolved'],
    ]);
    assert.deepEqual(of(second), [
      [1, 'alert.fired'],
      [2, 'alert.resolved'],
      [3, 'alert.resolved'],
    ]);
  });
});

describe('deliveries of several endpoints with a strict order', () => {
  const shuffled = <T>(items: readonly T[]): T[] =>
    items
      .map((item) => [Math.random(), item] as const)
      .sort((a, b) => a[0] - b[0])
      .map(([, item]) => item);

  test('claims, late outcomes, releases, sweeps and replays at once, for many rounds', async () => {
    const webhooks = [];
    for (let n = 0; n < 12; n++) webhooks.push(await newWebhook({ ordering: 'strict' }));
    const stopped = await newWebhook({ ordering: 'strict' });
    for (const webhook of shuffled([...webhooks, stopped])) await newDeliveries(webhook, 40);
    let held: Claimed[] = [];
    for (let round = 0; round < 40; round++) {
      const nowMs = startMs + round * (leaseMs + 1);
      const state = round % 2 === 0 ? ('enabled' as const) : ('disabled' as const);
      await db.updateTable('webhook').set({ state }).where('id', '=', stopped).execute();
      const late = shuffled(held);
      const [mine, theirs] = await Promise.all([
        claim(nowMs),
        claim(nowMs),
        queue.complete(late.slice(0, 8).map((one) => outcomeOf(one))),
        queue.complete(shuffled(late).map((one) => outcomeOf(one, retryAt(nowMs)))),
        queue.release(shuffled(late)),
        sweepStopped(db, nowMs),
        markFailedDue(db, stopped, startMs - 1000, nowMs, 100),
      ]);
      held = [...mine, ...theirs];
      const ofEach = Map.groupBy(held, ({ webhook_id }) => webhook_id);
      for (const claimed of ofEach.values()) assert.equal(claimed.length, 1, 'one in flight');
    }
    assert.ok(held.length > 0);
  });
});
