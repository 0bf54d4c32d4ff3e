import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sql } from 'kysely';
import { onPostgres, startApp } from '../../helpers/app.ts';
import { until } from '../../helpers/wait.ts';

type App = Awaited<ReturnType<typeof startApp>>;

/** Nothing can be written until it is called off. */
async function refuseWrites(t: App): Promise<() => Promise<void>> {
  if (!onPostgres) {
    const other = new DatabaseSync(join(t.app.config.dataDir, 'sluice.db'));
    other.exec('begin immediate');
    return async () => {
      other.exec('rollback');
      other.close();
    };
  }
  const locked = Promise.withResolvers<void>();
  const enough = Promise.withResolvers<void>();
  const holding = t.app.store.db.transaction().execute(async (tx) => {
    await sql`lock table meta in exclusive mode`.execute(tx);
    locked.resolve();
    await enough.promise;
  });
  await locked.promise;
  return async () => {
    enough.resolve();
    await holding;
  };
}

test('/readyz names what is ready; while nothing can be written it is 503, and reads are still ready', async () => {
  const t = await startApp();
  const ask = async (path: string) => {
    const { status, body } = await t.call('GET', path, { token: null });
    return [status, body];
  };
  await until('a router', async () => (await ask('/readyz/routes'))[0] === 200);
  assert.deepEqual(await ask('/readyz'), [200, 'ok\n']);
  assert.deepEqual(await ask('/readyz?verbose'), [200, 'ok\nreads: ok\nwrites: ok\nroutes: ok\n']);
  for (const name of ['reads', 'writes', 'routes']) assert.deepEqual(await ask(`/readyz/${name}`), [200, 'ok\n']);
  assert.equal((await ask('/readyz/other'))[0], 404);

  const allowWrites = await refuseWrites(t);
  const refused = await until('503', async () => {
    const [status, body] = await ask('/readyz');
    return status === 503 && body;
  });
  assert.equal(refused, 'database unavailable: no answer\nreads: ok\nwrites: no answer\nroutes: ok\n');
  assert.deepEqual(await ask('/readyz/writes'), [503, 'no answer\n']);
  assert.deepEqual(await ask('/readyz/reads'), [200, 'ok\n']);
  await allowWrites();
  await until('200', async () => (await ask('/readyz'))[0] === 200);
  await t.stop();
});
