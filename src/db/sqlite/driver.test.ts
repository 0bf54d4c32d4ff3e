import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Kysely, sql } from 'kysely';
import { sqliteDialect } from './driver.ts';

interface Schema {
  item: { id: number; owner: string };
}

const dir = mkdtempSync(join(tmpdir(), 'sluice-driver-'));
let db: Kysely<Schema>;
let other: Kysely<Schema>;
before(async () => {
  db = new Kysely<Schema>({ dialect: sqliteDialect(join(dir, 'a.db')) });
  await sql`create table item (id integer primary key, owner text not null)`.execute(db);
  other = new Kysely<Schema>({ dialect: sqliteDialect(join(dir, 'a.db')) });
});
after(async () => {
  await db.destroy();
  await other.destroy();
  rmSync(dir, { recursive: true });
});

const owners = async (from: Kysely<Schema>) =>
  (await from.selectFrom('item').select('owner').orderBy('id').execute()).map((row) => row.owner);

test('transactions of one turn are isolated: one that fails takes nothing of its neighbours with it', async () => {
  const results = await Promise.allSettled(
    ['a', 'b', 'c', 'd'].map((owner, index) =>
      db.transaction().execute(async (tx) => {
        await tx.insertInto('item').values({ id: index, owner }).execute();
        await tx
          .insertInto('item')
          .values({ id: index + 10, owner })
          .execute();
        if (owner === 'b') throw new Error('changed my mind');
        if (owner === 'c') await tx.insertInto('item').values({ id: 0, owner }).execute();
      }),
    ),
  );
  assert.deepEqual(
    results.map((result) => result.status),
    ['fulfilled', 'rejected', 'rejected', 'fulfilled'],
  );
  assert.deepEqual(await owners(db), ['a', 'd', 'a', 'd']);
});

test('what is acknowledged is committed: another connection sees it at once', async () => {
  await Promise.all(
    Array.from({ length: 50 }, async (_, index) => {
      const id = 100 + index;
      await db.insertInto('item').values({ id, owner: 'x' }).execute();
      const seen = await other.selectFrom('item').select('id').where('id', '=', id).executeTakeFirst();
      assert.equal(seen?.id, id);
    }),
  );
});

test('a read outside a transaction sees nothing that is not committed', async () => {
  let during: string[] = [];
  const before = await owners(db);
  await db.transaction().execute(async (tx) => {
    await tx.insertInto('item').values({ id: 500, owner: 'late' }).execute();
    during = await owners(db);
    assert.ok((await owners(tx as unknown as Kysely<Schema>)).includes('late'));
  });
  assert.deepEqual(during, before);
  assert.ok((await owners(db)).includes('late'));
});

test('a commit that fails rejects every transaction it would have made durable', async () => {
  await sql`create table parent (id integer primary key)`.execute(db);
  await sql`create table child (parent integer references parent(id) deferrable initially deferred)`.execute(db);
  const results = await Promise.allSettled([
    sql`insert into child values (1)`.execute(db),
    db.insertInto('item').values({ id: 900, owner: 'innocent' }).execute(),
  ]);
  assert.deepEqual(
    results.map((result) => result.status),
    ['rejected', 'rejected'],
  );
  assert.ok(!(await owners(db)).includes('innocent'));
  await db.insertInto('item').values({ id: 901, owner: 'next' }).execute();
  assert.ok((await owners(db)).includes('next'));
});
