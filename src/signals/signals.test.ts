import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Database } from '../db/database.ts';
import { openDatabase } from '../db/open-database.ts';
import { publish, subscribe } from './signals.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'sluice-signals-'));
let database: Database;

before(async () => {
  database = await openDatabase({ url: null, dataDir, onConnectionLost: () => {} });
});
after(async () => {
  await database.close();
  rmSync(dataDir, { recursive: true });
});

const shop = { projectId: 'prj_shop', environment: 'production' };
const blog = { projectId: 'prj_blog', environment: 'production' };

test('outside of a transaction a signal is delivered at once, until its subscriber unsubscribes', () => {
  const { db } = database;
  const received: unknown[] = [];
  const unsubscribe = subscribe(db, 'environments', (keys) => received.push(keys));
  publish(db, 'environments', shop);
  publish(db, 'routing', null);
  unsubscribe();
  publish(db, 'environments', blog);
  assert.deepEqual(received, [[shop]]);
});

test('in a transaction signals are delivered after the commit, each once, all of a topic together', async () => {
  const { db } = database;
  const received: unknown[] = [];
  const unsubscribe = subscribe(db, 'environments', (keys) => received.push(keys));
  await db.transaction().execute(async (tx) => {
    publish(tx, 'environments', shop);
    publish(tx, 'environments', blog);
    publish(tx, 'environments', { ...shop });
    assert.deepEqual(received, []);
  });
  unsubscribe();
  assert.deepEqual(received, [[shop, blog]]);
});

test('a transaction that is rolled back publishes nothing', async () => {
  const { db } = database;
  let count = 0;
  const unsubscribe = subscribe(db, 'events', () => count++);
  const failing = db.transaction().execute(async (tx) => {
    publish(tx, 'events', null);
    throw new Error('changed its mind');
  });
  await assert.rejects(failing, /changed its mind/);
  unsubscribe();
  assert.equal(count, 0);
});
