// Who gets the certificate of a domain, and that a process which lost its lease changes nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  CertificateLeaseLost,
  claimDue,
  extendLease,
  release,
  saveOrder,
} from '../../../src/domains/certificate-leases.ts';
import { onPostgres } from '../../helpers/app.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

// Its own issuer rests.
const t = sharedApp({ env: { SLUICE_ROLES: 'api' } });
const hourMs = 3600_000;
const room = { total: 5, each: 5, running: new Map<string, number>() };
const order = { order_directory: 'somewhere', order_url: 'https://ca.example/order/1', order_key_sealed: 'sealed' };

test('one process at a time, and only the latest writes', async () => {
  const { db } = t.app.store;
  const project = await t.newProject();
  const added = await t.call('POST', `/v1/projects/${project}/domains`, {
    body: { hostname: 'leases.example', environment: 'production' },
  });
  assert.equal(added.status, 201, JSON.stringify(added.body));
  const claim = (owner: string, offMs = 0) => claimDue(db, () => owner, room, Date.now() + offMs, 30_000);
  const [first] = await claim('one.1');
  assert.ok(first);
  assert.deepEqual(await claim('other.1'), []);
  // Other processes share only a PostgreSQL. A clock that is ahead does not end the lease of another.
  if (onPostgres) assert.deepEqual(await claim('other.2', hourMs), []);
  await extendLease(db, first, Date.now(), 30_000);
  await db.updateTable('domain').set({ lease_until: 0 }).where('id', '=', first.id).execute();
  const [second] = await claim('other.3');
  assert.equal(second!.id, first.id);
  await assert.rejects(saveOrder(db, first, order), CertificateLeaseLost);
  await assert.rejects(extendLease(db, first, Date.now(), 30_000), CertificateLeaseLost);
  await assert.rejects(release(db, first), CertificateLeaseLost);
  await saveOrder(db, second!, order);
  const row = await db.selectFrom('domain').selectAll().where('id', '=', first.id).executeTakeFirstOrThrow();
  assert.deepEqual([row.order_url, row.lease_owner], [order.order_url, 'other.3']);
});

test('accounts take turns: 300 domains of one do not delay the one of another', async () => {
  const { db } = t.app.store;
  const [like] = await db.selectFrom('domain').selectAll().limit(1).execute();
  await db.updateTable('domain').set({ next_attempt_at: null }).execute();
  const add = (account_id: string, n: number, dueAt: number) => ({
    ...like!,
    ...{ id: `dom_${account_id}_${n}`, account_id, hostname: `${account_id}-${n}.example`, next_attempt_at: dueAt },
    ...{ lease_owner: null, lease_until: 0 },
  });
  const many = Array.from({ length: 300 }, (_, n) => add('a', n, 1));
  for (let i = 0; i < many.length; i += 50)
    await db
      .insertInto('domain')
      .values(many.slice(i, i + 50))
      .execute();
  await db
    .insertInto('domain')
    .values([add('b', 0, 2), add('c', 0, 3)])
    .execute();
  let claims = 0;
  const claim = (running: Map<string, number>) =>
    claimDue(db, () => `turns.${++claims}`, { total: 10, each: 4, running }, Date.now(), 30_000);
  const accounts = (await claim(new Map())).map(({ account_id }) => account_id);
  assert.deepEqual(accounts, ['a', 'b', 'c', 'a', 'a', 'a']);
  assert.deepEqual(await claim(new Map([['a', 4]])), [], 'no more of one that has its share');
  await db.deleteFrom('domain').where('account_id', 'in', ['a', 'b', 'c']).execute();
});
