// An event with more subscribers than one transaction serves: their deliveries follow in slices, none is lost, and those of
// a webhook with a strict order stay in it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { publish } from '../../../src/signals/signals.ts';
import { accountOf, emitIn } from '../../helpers/emit.ts';
import { Receiver } from '../../helpers/receiver.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { until } from '../../helpers/wait.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });
const webhooks = 105;
const events = 3;

test('deliveries beyond the budget of a transaction follow, in order and once', async () => {
  const { db } = t.app.store;
  const project = await t.newProject();
  const receiver = await Receiver.open();
  const subscribe = (ordering: string) =>
    t.call('POST', '/v1/webhooks', { body: { url: receiver.url, events: ['*'], project_id: project, ordering } });
  const strict = (await subscribe('strict')).body.id;
  await Promise.all(Array.from({ length: webhooks - 1 }, () => subscribe('none')));

  const deliveriesOf = async () =>
    db
      .selectFrom('delivery')
      .innerJoin('event', 'event.id', 'delivery.event_id')
      .select(['delivery.webhook_id', 'delivery.position', 'event.sequence', 'delivery.state'])
      .where('event.project_id', '=', project)
      .orderBy('delivery.position')
      .execute();
  await db.transaction().execute(async (tx) => {
    for (let n = 0; n < events; n++) await emitIn(tx, project);
    const inserted = await tx.selectFrom('delivery').select('id').where('state', '=', 'pending').execute();
    assert.ok(inserted.length <= 100, `${inserted.length} deliveries in one transaction`);
  });
  // Its order is that of the events, although those before it are still on their way.
  await db.transaction().execute((tx) => emitIn(tx, project));
  const total = webhooks * (events + 1);
  await until('all deliveries', async () => (await deliveriesOf()).length === total || undefined, 30_000);
  const inOrder = (await deliveriesOf()).filter(({ webhook_id }) => webhook_id === strict);
  assert.deepEqual(
    inOrder.map(({ sequence }) => Number(sequence)),
    [1, 2, 3, 4],
  );
  await receiver.has(total);
  const { backlog } = await db
    .selectFrom('project')
    .select('backlog')
    .where('id', '=', project)
    .executeTakeFirstOrThrow();
  assert.equal(Number(backlog), 0);
  assert.deepEqual(await db.selectFrom('event_backlog').selectAll().where('project_id', '=', project).execute(), []);

  // One that comes later gets what comes later.
  const late = (await subscribe('none')).body.id;
  await db.transaction().execute((tx) => emitIn(tx, project));
  await until(
    'the next event',
    async () => (await deliveriesOf()).length === total + webhooks + 1 || undefined,
    30_000,
  );
  const ofLate = (await deliveriesOf()).filter(({ webhook_id }) => webhook_id === late);
  assert.deepEqual(
    ofLate.map(({ sequence }) => Number(sequence)),
    [5],
  );
  await receiver.close();
});

test('a deleted project goes as soon as its last events have their deliveries', async () => {
  const { db } = t.app.store;
  const project = await t.newProject();
  const last = { project_id: project, account_id: await accountOf(db, project), sequence: 1, event_id: 'evt_last' };
  await db.updateTable('project').set({ backlog: 1 }).where('id', '=', project).execute();
  assert.equal((await t.call('DELETE', `/v1/projects/${project}`)).status, 204);
  const environments = () => db.selectFrom('environment').select('name').where('project_id', '=', project).execute();
  await until('all else of it is gone', async () => (await environments()).length === 0);
  const find = () => db.selectFrom('project').select('id').where('id', '=', project).executeTakeFirst();
  assert.ok(await find());
  await db
    .insertInto('event_backlog')
    .values({ ...last, type: 'alert.fired', after_webhook: '', last_webhook: '' })
    .execute();
  await db.transaction().execute(async (tx) => publish(tx, 'deliveries', null));
  // The next look without a signal would be a minute later.
  await until('the project is gone', async () => (await find()) === undefined, 20_000);
});
