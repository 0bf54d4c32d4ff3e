// Events are written in the transaction of the change they report.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type EventKind, eventKinds, eventSchemas } from '../../../src/contract/events.ts';
import { conforms } from '../../../src/http/api/validate.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createIds } from '../../../src/lib/ids.ts';
import { emitIn } from '../../helpers/emit.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });
const ids = createIds(systemClock);

describe('the outbox', () => {
  test('a change that is rolled back leaves no event and no delivery; one that commits has both', async () => {
    const project = await t.newProject();
    await t.call('POST', '/v1/webhooks', { body: { url: 'http://127.0.0.1:9/', events: ['*'], project_id: project } });
    const { db } = t.app.store;
    const rename = (name: string, fail: boolean) =>
      db.transaction().execute(async (tx) => {
        await tx.updateTable('project').set({ name }).where('id', '=', project).execute();
        await emitIn(tx, project);
        if (fail) throw new Error('the change fails after its event was written');
      });
    await assert.rejects(rename('never', true), /after its event/);
    const look = async () => {
      const events = await db.selectFrom('event').select('id').where('project_id', '=', project).execute();
      const deliveries = await db
        .selectFrom('delivery')
        .innerJoin('event', 'event.id', 'delivery.event_id')
        .select('delivery.id')
        .where('event.project_id', '=', project)
        .execute();
      const { name } = (await t.call('GET', `/v1/projects/${project}`)).body;
      return [name === 'once', events.length, deliveries.length];
    };
    assert.deepEqual(await look(), [false, 0, 0]);
    await rename('once', false);
    assert.deepEqual(await look(), [true, 1, 1]);
  });

  test('no change commits where its event cannot be written', async () => {
    const shop = await Shop.open(t.url);
    const { db } = t.app.store;
    // The next number is taken: the insert of the event will fail.
    const blocker = { id: ids('evt'), account_id: 'acc', project_id: shop.project, type: 'alert.fired' as const };
    await db
      .insertInto('event')
      .values({ ...blocker, sequence: 1, body: '{}', created_at: 0 })
      .execute();
    const body = { environment: 'production', image: 'registry.example/shop:1' };
    const refused = await shop.api('POST', '/deployments', body);
    assert.equal(refused.status, 500);
    assert.deepEqual((await shop.api('GET', '/deployments')).body.data, []);
    await db.deleteFrom('event').where('id', '=', blocker.id).execute();
    await shop.released('registry.example/shop:1');
  });

  test('the events of a deployment conform to the published schema of their kind', async () => {
    const shop = await Shop.open(t.url);
    await shop.released('registry.example/shop:1');
    await shop.released('registry.example/shop:2');
    const rollback = await shop.api('POST', '/environments/production/rollback', {});
    await shop.reaches(rollback.body.id, 'succeeded');
    const aborted = await shop.deploy('registry.example/shop:3', { strategy: 'canary', canary_percent: 50 });
    await shop.reaches(aborted.id, 'canary');
    await shop.api('POST', `/deployments/${aborted.id}/abort`);
    await shop.reaches(aborted.id, 'failed', 'canceled');
    const { data } = (await t.call('GET', `/v1/events?project_id=${shop.project}&limit=100`)).body;
    const seen = new Set<string>();
    for (const event of data) {
      seen.add(event.type);
      assert.ok(conforms(eventSchemas[event.type as EventKind], event), JSON.stringify(event));
    }
    const ours = eventKinds.filter((kind) => kind.startsWith('deployment.') || kind.startsWith('revision.'));
    assert.deepEqual([...seen].sort(), ours.sort());
  });
});
