// Signals between processes, and events that an older transaction holds back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { beginning, listCommitted } from '../../../src/events/event-positions.ts';
import { connectProcesses } from '../../../src/signals/process-signals.ts';
import { publish, subscribe, type Topics } from '../../../src/signals/signals.ts';
import { openStore } from '../../../src/store.ts';
import { onPostgres } from '../../helpers/app.ts';
import { accountOf, emit } from '../../helpers/emit.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { until } from '../../helpers/wait.ts';

const t = sharedApp();

if (onPostgres) {
  test('another process receives all signals of a commit, however many they are', async () => {
    const { config } = t.app;
    const other = await openStore(config, () => {});
    const processes = connectProcesses({
      db: other.db,
      databaseUrl: config.databaseUrl!,
      processId: 'other',
      log: t.app.log,
      loops: t.app.loops,
    });
    const received: Topics['environments'][] = [];
    let gaps = 0;
    const unsubscribe = subscribe(other.db, 'environments', (keys) => {
      if (keys.length === 0) gaps++;
      received.push(...keys);
    });
    await until('the connection', () => gaps > 0);
    const keys = Array.from({ length: 300 }, (_, n) => ({
      projectId: `prj_${String(n).padStart(26, '0')}`,
      environment: 'live',
    }));
    await t.app.store.db.transaction().execute(async (tx) => {
      for (const key of keys) publish(tx, 'environments', key);
    });
    await until('all of them', () => received.length >= keys.length);
    assert.deepEqual(received, keys);
    unsubscribe();
    await processes.stop();
    await other.close();
  });
}

test('an event is held back while an older transaction is open, and the reader is told', async () => {
  const { db, dialect } = t.app.store;
  const projectId = await t.newProject();
  const accountId = await accountOf(db, projectId);
  const filter = { accountId, projectIds: null, type: undefined };
  const read = () => listCommitted(db, dialect, filter, beginning, 10);
  const older = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const open = onPostgres
    ? db.transaction().execute(async (tx) => {
        await tx.insertInto('meta').values({ name: 'older', value: '1' }).execute();
        begun.resolve();
        await older.promise;
      })
    : begun.resolve();
  await begun.promise;
  await emit(db, projectId);
  const { rows, held } = await read();
  assert.deepEqual([rows.length, held], onPostgres ? [0, true] : [1, false]);
  older.resolve();
  await open;
  await until('the event', async () => (await read()).rows.length === 1);
  assert.equal((await read()).held, false);
});

test('a subscriber that throws makes no commit fail, and keeps the signal from no other', async () => {
  const { db } = t.app.store;
  const received: string[] = [];
  const ends = [
    subscribe(db, 'domains', () => {
      throw new Error('a fault in a subscriber');
    }),
    subscribe(db, 'domains', ([domain]) => received.push(domain!.hostname)),
  ];
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
  await db.transaction().execute(async (tx) => publish(tx, 'domains', { hostname: 'shop.test' }));
  for (const end of ends) end();
  assert.deepEqual(received, ['shop.test']);
  assert.equal((await warned).message, 'a fault in a subscriber');
});
