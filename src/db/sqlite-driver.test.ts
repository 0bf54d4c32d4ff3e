import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { Kysely, sql } from 'kysely';
import { isUnavailable } from './database-errors.ts';
import { sqliteDialect } from './sqlite-driver.ts';
import { Handle, Writer } from './sqlite-writer.ts';

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

test('after a commit that fails, its transactions end and no neighbour loses a row', async () => {
  await sql`create table pair (id text primary key, half integer not null)`.execute(db);
  const acknowledged: string[] = [];
  const refused: string[] = [];
  const write = (id: string, breaks: boolean) =>
    db
      .transaction()
      .execute(async (tx) => {
        await sql`insert into pair values (${`${id}a`}, 1)`.execute(tx);
        if (breaks) await sql`insert into child values (1)`.execute(tx);
        await new Promise(setImmediate);
        await sql`insert into pair values (${`${id}b`}, 2)`.execute(tx);
      })
      .then(
        () => void acknowledged.push(id),
        () => void refused.push(id),
      );
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
  };
  // The second begins while the first holds the lock, the third while the COMMIT of the first waits for it.
  for (let round = 0; round < 30; round++) {
    const first = write(`${round}x`, true);
    await turns(round % 3);
    const second = write(`${round}m`, false);
    await turns(round % 5);
    await Promise.all([first, second, write(`${round}n`, false), write(`${round}o`, false)]);
  }
  assert.ok(refused.length > 0 && acknowledged.length > 0, `${refused.length} refused`);
  const { rows } = await sql<{ id: string }>`select id from pair order by id`.execute(other);
  assert.deepEqual(
    rows.map(({ id }) => id),
    acknowledged.flatMap((id) => [`${id}a`, `${id}b`]).sort(),
  );
});

test('a full disk refuses what does not fit, whole, and the writer goes on', async () => {
  const { rows: pages } = await sql<{ page_count: number }>`pragma page_count`.execute(db);
  await sql`create table blob_row (id text primary key, bytes blob)`.execute(db);
  // The writer's own limit: only its connection has it. A pragma that gives rows runs where it is told to, in a transaction.
  await db.transaction().execute((tx) => sql.raw(`pragma max_page_count = ${pages[0]!.page_count + 20}`).execute(tx));
  const big = (id: string) =>
    db.transaction().execute(async (tx) => {
      await sql`insert into blob_row values (${`${id}1`}, zeroblob(10))`.execute(tx);
      await sql`insert into blob_row values (${`${id}2`}, zeroblob(200000))`.execute(tx).catch(() => {});
      await sql`insert into blob_row values (${`${id}3`}, zeroblob(10))`.execute(tx);
    });
  const small = (id: string) => sql`insert into blob_row values (${id}, zeroblob(10))`.execute(db);
  const results = await Promise.allSettled([big('x'), small('y'), big('z')]);
  assert.deepEqual([results[0]!.status, results[2]!.status], ['rejected', 'rejected']);
  await db.transaction().execute((tx) => sql.raw('pragma max_page_count = 1073741823').execute(tx));
  await small('after');
  const { rows } = await sql<{ id: string }>`select id from blob_row order by id`.execute(other);
  const expected = results[1]!.status === 'fulfilled' ? ['after', 'y'] : ['after'];
  assert.deepEqual(
    rows.map(({ id }) => id),
    expected,
  );
});

function lockFile(): { release(): void } {
  const stranger = new DatabaseSync(join(dir, 'a.db'));
  stranger.exec('begin immediate');
  return {
    release() {
      stranger.exec('rollback');
      stranger.close();
    },
  };
}

test('a write waits for another process that holds the lock, and nothing else waits with it', async () => {
  const lock = lockFile();
  let written = false;
  const write = db
    .insertInto('item')
    .values({ id: 900, owner: 'patient' })
    .execute()
    .then(() => {
      written = true;
    });
  const begun = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 100));
  await owners(db);
  assert.ok(performance.now() - begun < 3000, 'the event loop was held up');
  assert.equal(written, false);
  lock.release();
  await write;
});

test('however many wait for the lock, all fail after the limit, and the next write succeeds', async () => {
  const lock = lockFile();
  const begun = performance.now();
  const writes = Array.from({ length: 20 }, (_, n) =>
    db
      .insertInto('item')
      .values({ id: 910 + n, owner: 'late' })
      .execute(),
  );
  const results = await Promise.allSettled(writes);
  assert.ok(results.every((result) => result.status === 'rejected' && isUnavailable(result.reason)));
  assert.ok(performance.now() - begun < 10_000, 'each waited for itself');
  lock.release();
  await db.insertInto('item').values({ id: 910, owner: 'late' }).execute();
});

test('a connection that is lost while its file cannot be opened is opened again by a later transaction', async () => {
  const folder = mkdtempSync(join(dir, 'lost-'));
  const path = join(folder, 'a.db');
  const writer = new Writer(
    () => new Handle(path, false),
    () => {},
  );
  const savepoint = await writer.begin();
  renameSync(folder, `${folder}.away`);
  writer.handle.close();
  writer.rollback(savepoint);
  await assert.rejects(writer.begin(), 'it cannot be opened');
  renameSync(`${folder}.away`, folder);
  await writer.commit(await writer.begin());
  await writer.close();
});
