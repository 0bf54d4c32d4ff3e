// The wait before instances are started again is that of a round of starts, however many instances the round has.
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
  const shop = await Shop.open(t.url, { replicas, variables: { STANDIN_EXIT_AFTER_S: '6' } });
  await shop.released(image(1), { strategy: 'blue_green' });
  const ids = async () => (await instancesOf(t.app.store.db, shop)).map(({ id }) => id);
  const old = new Set(await ids());
  await until('all to end', async () => (await ids()).every((id) => !old.has(id)), 30_000);
  await until('all to be back', async () => (await ids()).filter((id) => !old.has(id)).length === replicas, soonMs);
});
