// Which deployments, audit rows and tokens go for their age, and which stay; and what a pass costs where there were many.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import type { Db } from '../../../src/db/database.ts';
import { readDatabaseSize } from '../../../src/db/database-size.ts';
import { listCurrentRevisions, listEnvironmentsToKeep } from '../../../src/deployments/deployment-queries.ts';
import { sweepDeployments } from '../../../src/deployments/deployment-retention.ts';
import type { EnvironmentKey } from '../../../src/environments/environment-key.ts';
import { createIds } from '../../../src/lib/ids.ts';
import { deleteEndedTokensBefore } from '../../../src/tokens/token-queries.ts';
import { onPostgres } from '../../helpers/app.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });
const image = 'registry.example/team/web:v1';
const dayMs = 86_400_000;

/** Copies of the first revision and its deployment, as if there had been so many before, one a day and the last one yesterday. */
async function addPast(shop: Shop, count: number, state = 'retired'): Promise<void> {
  const { db } = t.app.store;
  const first = await db
    .selectFrom('revision')
    .selectAll()
    .where('project_id', '=', shop.project)
    .executeTakeFirstOrThrow();
  const row = await db
    .selectFrom('deployment')
    .selectAll()
    .where('project_id', '=', shop.project)
    .executeTakeFirstOrThrow();
  const { next_revision: next } = await db
    .selectFrom('environment')
    .select('next_revision')
    .where('project_id', '=', shop.project)
    .executeTakeFirstOrThrow();
  await db.transaction().execute(async (tx) => {
    for (let n = 0; n < count; n++) {
      const created_at = Date.now() - (count - n) * dayMs;
      const id = createIds({ now: () => created_at })('dpl');
      const number = next + n;
      await tx
        .insertInto('deployment')
        .values({ ...row, id, revision: number, created_at, finished_at: created_at })
        .execute();
      await tx
        .insertInto('revision')
        .values({ ...first, number, deployment_id: id, state: state as 'retired', traffic_percent: 0, created_at })
        .execute();
    }
    await tx
      .updateTable('environment')
      .set({ next_revision: next + count })
      .where('project_id', '=', shop.project)
      .execute();
  });
}

async function sweepAll(olderThanMs: number, most: number): Promise<void> {
  let after: EnvironmentKey | null = null;
  do after = await sweepDeployments(t.app.store.db, { olderThanMs, most }, after);
  while (after !== null);
}

const numbersOf = async (shop: Shop) =>
  (
    await t.app.store.db
      .selectFrom('revision')
      .select('number')
      .where('project_id', '=', shop.project)
      .orderBy('number')
      .execute()
  ).map(({ number }) => number);

const from = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, n) => first + n);

test('deployments go for their age and their number; what is live or can be restored stays, and so do the latest', async () => {
  const { db } = t.app.store;
  const [aged, many, quiet] = [await Shop.open(t.url), await Shop.open(t.url), await Shop.open(t.url)];
  for (const shop of [aged, many, quiet]) await shop.reaches((await shop.deploy(image)).id, 'succeeded');
  await addPast(aged, 300);
  await addPast(many, 300);
  await addPast(quiet, 15);
  await db
    .updateTable('revision')
    .set({ state: 'superseded' })
    .where('project_id', '=', aged.project)
    .where('number', '=', 7)
    .execute();
  await sweepAll(Date.now() - 90.5 * dayMs, 1_000_000);
  assert.deepEqual(await numbersOf(aged), [1, 7, ...from(212, 301)], 'the live one, one to roll back to, and 90 days');
  await db
    .updateTable('deployment')
    .set({ finished_at: null })
    .where('project_id', '=', many.project)
    .where('revision', '=', 250)
    .execute();
  await sweepAll(0, 40);
  assert.deepEqual(await numbersOf(many), [1, 250, ...from(262, 301)], 'the live one, one in progress, and 40');
  await sweepAll(Date.now() + dayMs, 1_000_000);
  assert.equal((await numbersOf(quiet)).length, 16, 'the latest of an environment');
  const rest = await db
    .selectFrom('deployment')
    .select('revision')
    .where('project_id', 'in', [aged.project, many.project])
    .execute();
  const revisions = [...(await numbersOf(aged)), ...(await numbersOf(many))];
  assert.deepEqual(rest.map(({ revision }) => revision).sort(), revisions.sort(), 'each with its revision');
  const { body } = await t.call('GET', `/v1/projects/${aged.project}/environments/production/revisions?limit=100`);
  assert.equal(body.data.filter((one: { rollback_eligible: boolean }) => one.rollback_eligible).length, 1);
});

test('a token goes when it ended long ago and made none that is left', async () => {
  const { db } = t.app.store;
  const make = async (name: string) =>
    (await t.call('POST', '/v1/tokens', { body: { name, scopes: ['*'] } })).body.id as string;
  const [parent, child, live] = [await make('parent'), await make('child'), await make('live')];
  const endedAt = (id: string, revoked_at: number) =>
    db.updateTable('token').set({ revoked_at }).where('id', '=', id).execute();
  await db.updateTable('token').set({ parent_id: parent }).where('id', '=', child).execute();
  await endedAt(parent, 1000);
  const left = async () =>
    (await db.selectFrom('token').select('id').where('id', 'in', [parent, child, live]).execute()).length;
  await deleteEndedTokensBefore(db, 2000);
  assert.equal(await left(), 3);
  await endedAt(child, 2500);
  await deleteEndedTokensBefore(db, 2000);
  assert.equal(await left(), 3);
  for (const _ of [child, parent]) await deleteEndedTokensBefore(db, 3000);
  assert.equal(await left(), 1);
});

test('a pass reads what is live, however many revisions there were', async () => {
  const { db } = t.app.store;
  const [busy, fresh] = [await Shop.open(t.url), await Shop.open(t.url)];
  for (const shop of [busy, fresh]) await shop.reaches((await shop.deploy(image)).id, 'succeeded');
  await addPast(busy, 1500);
  if (onPostgres) await sql`analyze revision`.execute(db);
  const keyOf = (shop: Shop) => ({ projectId: shop.project, environment: 'production' });
  /** Processor time of so many reads, in turns with those of the other. Each differs, so that none comes from a cache. */
  const cost = async (shop: Shop) => {
    const before = process.cpuUsage();
    for (let n = 0; n < 20; n++) {
      await db.transaction().execute((tx) => listCurrentRevisions(tx, keyOf(shop)));
      await db.transaction().execute((tx) => listEnvironmentsToKeep(tx));
    }
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  const turns: number[] = [];
  for (let turn = 0; turn < 7; turn++) turns.push((await cost(busy)) / (await cost(fresh)));
  const median = turns.sort((a, b) => a - b)[3]!;
  assert.ok(median < 2.5, `${median} times as much`);
  assert.deepEqual(
    (await listCurrentRevisions(db, keyOf(busy))).map(({ number }) => number),
    [1],
  );
  const { bytes, rows } = await readDatabaseSize(db);
  assert.ok(bytes > 0 && rows.get('revision')! > (onPostgres ? 0 : 1500), `${bytes} ${[...rows]}`);
});

test('a deleted environment asks for no pass while what belonged to it is cleared away', async () => {
  const shop = await Shop.open(t.url);
  await shop.reaches((await shop.deploy(image)).id, 'succeeded');
  const isKept = (tx: Db) =>
    listEnvironmentsToKeep(tx).then((keys) => keys.some(({ projectId }) => projectId === shop.project));
  await t.app.store.db.transaction().execute(async (tx) => {
    assert.equal(await isKept(tx), true);
    await tx.updateTable('environment').set({ deleted_at: 1 }).where('project_id', '=', shop.project).execute();
    assert.equal(await isKept(tx), false);
  });
});
