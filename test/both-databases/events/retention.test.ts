// How long events and their deliveries are kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createIds, idFloor } from '../../../src/lib/ids.ts';
import { sweepOld } from '../../../src/webhooks/delivery-sweep.ts';
import { accountOf, emit } from '../../helpers/emit.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });

test('events and deliveries past their retention are deleted in batches; pending deliveries stay', async () => {
  const { db } = t.app.store;
  const project = await t.newProject();
  const account_id = await accountOf(db, project);
  const webhook = await t.call('POST', '/v1/webhooks', {
    body: { url: 'http://127.0.0.1:9/', events: ['*'], project_id: project },
  });
  await t.call('PATCH', `/v1/webhooks/${webhook.body.id}`, { body: { state: 'paused' } });
  const cutoffMs = Date.now() - 90 * 24 * 3600_000;
  const oldIds = createIds({ now: () => cutoffMs - 1000 });
  const rows = Array.from({ length: 1200 }, (_, n) => ({ event: oldIds('evt'), delivery: oldIds('dlv'), n }));
  for (const { event, delivery, n } of rows) {
    const common = { type: 'alert.fired' as const, created_at: cutoffMs - 1000 };
    await db
      .insertInto('event')
      .values({ id: event, account_id, project_id: project, sequence: 1000 + n, body: '{}', ...common })
      .execute();
    const state = n % 100 === 0 ? ('pending' as const) : ('succeeded' as const);
    const rest = {
      position: 0,
      due_at: 0,
      lease: null,
      lease_until: 0,
      attempts: 1,
      tried: 1,
      test_body: null,
      finished_at: null,
    };
    await db
      .insertInto('delivery')
      .values({ id: delivery, webhook_id: webhook.body.id, event_id: event, state, ...rest, ...common })
      .execute();
  }
  await emit(t.app.store.db, project);
  let rounds = 0;
  while (await sweepOld(db, cutoffMs)) assert.ok(++rounds < 10);
  assert.ok(rounds >= 2, 'in batches');
  const left = await db.selectFrom('event').select('id').where('project_id', '=', project).execute();
  assert.equal(left.filter(({ id }) => id < idFloor('evt', cutoffMs)).length, 12);
  assert.equal(left.length, 13);
  const deliveries = await db
    .selectFrom('delivery')
    .select('state')
    .where('webhook_id', '=', webhook.body.id)
    .execute();
  assert.equal(deliveries.length, 13);
});
