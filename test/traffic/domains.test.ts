// Domains in the routing table: each leads to its environment, and those with a certificate redirect to HTTPS.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Tables } from '../../src/db/tables.ts';
import { loadAll } from '../../src/traffic/load-routes.ts';
import { markRoutingChanged } from '../../src/traffic/traffic-queries.ts';
import { startApp, type TestApp } from '../helpers/app.ts';
import { ask, named, route, share, startRouter } from '../helpers/router.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

let t: TestApp;
before(async () => {
  t = await startApp({ tokenLimit: 1_000_000, env: { SLUICE_HTTPS_REDIRECT: '443' } });
});
after(() => t.stop());

async function insertDomains(project: string, hostnames: string[], certificate: string | null): Promise<void> {
  const { db } = t.app.store;
  const { account_id } = await db
    .selectFrom('project')
    .select('account_id')
    .where('id', '=', project)
    .executeTakeFirstOrThrow();
  const rows = hostnames.map((hostname): Tables['domain'] => ({
    ...{ id: `dom_${hostname}`, account_id, project_id: project, environment: 'production', hostname },
    ...{
      state: 'active',
      proof: 'not_needed',
      txt_found: null,
      certificate_id: certificate,
      last_error: null,
      failures: 0,
      next_attempt_at: null,
    },
    ...{ wait_until: null, renew_asked: 0, lease_owner: null, lease_until: 0, order_directory: null },
    ...{ order_url: null, order_key_sealed: null, created_at: 1, updated_at: 1, version: 1 },
  }));
  await db.transaction().execute(async (tx) => {
    await tx.insertInto('domain').values(rows).execute();
    await markRoutingChanged(tx, { projectId: project, environment: 'production' });
  });
}

test('1,000 domains lead to their environment', async () => {
  const shop = await Shop.open(t.url);
  const quiet = await Shop.open(t.url);
  await shop.released('registry.example/shop:1');
  const secure = Array.from({ length: 900 }, (_, i) => `s${i}.example`);
  const plain = Array.from({ length: 100 }, (_, i) => `p${i}.example`);
  await insertDomains(shop.project, secure, 'crt_1');
  await insertDomains(shop.project, plain, null);
  await insertDomains(quiet.project, ['nothing-deployed.example'], null);

  const [routes, ...others] = (await Array.fromAsync(loadAll(t.app.store.db, 'localhost'))).flat();
  assert.deepEqual(others, [], 'what has nothing deployed is not in the table');
  const named = (names: string[], secure: boolean) => names.map((name) => ({ name, secure }));
  const byName = (hosts: { name: string }[]) => hosts.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const own = shop.host.split(':')[0]!;
  assert.deepEqual(byName(routes!.hosts), byName([...named([own, ...plain], false), ...named(secure, true)]));

  const port = Number(new URL(`http://${shop.host}`).port);
  const answer = await until('the router to know', async () => {
    const { status, body } = await ask(port, { host: 'p99.example' });
    return status === 200 ? JSON.parse(body) : undefined;
  });
  assert.equal(answer.image, 'registry.example/shop:1');
  const { status, headers } = await ask(port, { host: 's0.example', path: '/a?b' });
  assert.deepEqual([status, headers.location], [308, 'https://s0.example/a?b']);
  assert.equal((await ask(port, { host: shop.host })).status, 200);
});

test('hosts of one environment share its instances, turns and counters', async () => {
  const router = await startRouter();
  const instances = [await named('a'), await named('b')];
  const names = Array.from({ length: 1000 }, (_, i) => `h${i}.example`);
  await router.apply(route([share(1, 100, ...instances)], names));
  for (const host of names.slice(0, 20)) await ask(router.port(), { host });
  assert.deepEqual(
    instances.map(({ seen }) => seen.length),
    [10, 10],
  );
  assert.deepEqual(await router.counted(1), { requests: 20, errors: 0, clientErrors: 0 });
});
