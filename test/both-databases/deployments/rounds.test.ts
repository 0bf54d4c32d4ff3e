// The wait before instances are started again is that of a round of starts, however many instances the round has.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image, instancesOf } from './deployments-fixture.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });

const replicas = 8;
/** With a wait that grew with every one of them, it would be half a minute. */
const soonMs = 15_000;

test('eight replicas that end together are soon back together', async () => {
  const shop = await Shop.open(t.url, { replicas, variables: { STANDIN_EXIT_ON: '/exit' } });
  await shop.released(image(1), { strategy: 'blue_green' });
  const instances = () => instancesOf(t.app.store.db, shop);
  const old = await instances();
  assert.equal(old.length, replicas);
  const isNew = ({ id }: { id: string }) => !old.some((one) => one.id === id);
  await Promise.all(old.map(({ host, port }) => assert.rejects(fetch(`http://${host}:${port}/exit`))));
  await until('all to be back', async () => (await instances()).filter(isNew).length === replicas, soonMs);
});
