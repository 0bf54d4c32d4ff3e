import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Database, Db } from './database.ts';
import { migrate } from './migrate.ts';
import { openDatabase } from './open-database.ts';
import { prepared, preparedInsert } from './prepared.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'sluice-prepared-'));
let database: Database;

before(async () => {
  database = await openDatabase({ url: null, dataDir, onConnectionLost: () => {} });
  await migrate(database.db, database.dialect);
});
after(async () => {
  await database.close();
  rmSync(dataDir, { recursive: true });
});

const insertAccount = preparedInsert('account');
const selectAccount = prepared((db) => db.selectFrom('account').select('id').where('id', '=', ''));
const account = (id: string) => ({ id, name: id, created_at: 0 });
const has = async (db: Db, id: string): Promise<boolean> => (await selectAccount(db, id)).length === 1;

test('a prepared insert is part of its transaction', async () => {
  const { db } = database;
  const failed = db.transaction().execute(async (tx) => {
    await insertAccount(tx, account('undone'));
    assert.equal(await has(tx, 'undone'), true);
    assert.equal(await has(db, 'undone'), false);
    throw new Error('changed my mind');
  });
  await assert.rejects(failed, /changed my mind/);
  assert.equal(await has(db, 'undone'), false);
  await db.transaction().execute((tx) => insertAccount(tx, account('kept')));
  assert.equal(await has(db, 'kept'), true);
});

test('a transaction that has ended is refused, also while another is open', async () => {
  const { db } = database;
  let ended!: Db;
  await db.transaction().execute(async (tx) => {
    ended = tx;
  });
  await db.transaction().execute(async () => {
    await assert.rejects(insertAccount(ended, account('late')), /already committed/);
    await assert.rejects(selectAccount(ended, 'late'), /already committed/);
  });
  assert.equal(await has(db, 'late'), false);
});
