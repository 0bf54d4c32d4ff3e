// The database is away for a while, and is away at a start: routes, TLS and measurements go on.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { ask, host, named } from '../helpers/router.ts';
import { routeTo, seedEnvironment, startControl, startLoad, storedRequests } from '../helpers/router-control.ts';
import { handshake } from '../helpers/router-tls.ts';
import { until } from '../helpers/wait.ts';
import { openWorkers } from '../helpers/workers.ts';

/** As long as one likes with SLUICE_TEST_AWAY_S. */
const awayMs = Number(process.env.SLUICE_TEST_AWAY_S ?? 6) * 1000;

let postgres: TestPostgres;
before(async () => {
  postgres = await startPostgres();
});
after(() => postgres.stop());

test('away under load, and then at the start of everything: nothing fails, each request counts once', async () => {
  const workers = openWorkers();
  const { db } = await seedEnvironment(workers, postgres.url);
  await routeTo(db, 1, [await named('before')]);
  const control = startControl(workers, postgres.url);
  await control.ready;
  const worker = workers.start();
  await worker.ready;
  let visits = 0;
  const visit = () => {
    visits++;
    return ask(workers.ports.http);
  };
  // The local CA issues for the environment's own address, so the client does not know the root.
  const secure = async () =>
    'getPeerCertificate' in (await handshake(workers.ports.tls, { servername: host, rejectUnauthorized: false }));
  assert.ok(await secure());

  const load = startLoad(4, visit);
  await postgres.pause();
  const backAt = Date.now() + awayMs;
  await until(
    'the time is over',
    async () => {
      assert.ok(await secure());
      return Date.now() > backAt;
    },
    awayMs * 2,
    200,
  );
  await postgres.resume();
  await routeTo(db, 2, [await named('after')]);
  await until('the change is in force', async () => (await visit()).body === 'after');
  await load.stop();
  assert.deepEqual(load.failed, []);
  await until('all are stored', async () => (await storedRequests(db)) >= visits);
  assert.equal(await storedRequests(db), visits);

  await postgres.pause();
  await control.kill();
  worker.child.kill('SIGKILL');
  await worker.exited;
  const late = startControl(workers, postgres.url);
  const fresh = workers.start();
  await fresh.ready;
  for (let i = 0; i < 50; i++) assert.equal((await visit()).body, 'after');
  assert.ok(await secure());
  fresh.child.kill('SIGTERM'); // what it measured waits on disk
  await fresh.exited;
  await workers.start().ready;
  for (let i = 0; i < 50; i++) assert.equal((await visit()).body, 'after');
  await postgres.resume();
  await late.ready;
  await until('all are stored', async () => (await storedRequests(db)) >= visits);
  assert.equal(await storedRequests(db), visits);
  console.log(`${visits} requests, away for ${awayMs / 1000} s and at a start: none failed, each counted once`);
});
