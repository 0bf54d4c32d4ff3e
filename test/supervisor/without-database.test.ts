// The service starts while its database is away: visitors are served from what lies on disk, and nothing measured is lost.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startPostgres } from '../helpers/postgres.ts';
import { startRoutedService } from '../helpers/routed-service.ts';
import { ask, host, named } from '../helpers/router.ts';
import { routeTo, startLoad, storedRequests } from '../helpers/router-control.ts';
import { handshake } from '../helpers/router-tls.ts';
import { until } from '../helpers/wait.ts';

/** As long as one likes with SLUICE_TEST_AWAY_S. */
const awayMs = Number(process.env.SLUICE_TEST_AWAY_S ?? 2) * 1000;

const postgres = await startPostgres();
after(() => postgres.stop());
const routed = await startRoutedService([await named('before')], { databaseUrl: postgres.url });

test('a start without a database: routes and TLS work, and each request counts once it is back', {
  timeout: 300_000,
}, async () => {
  const { db, ports } = routed;
  let visits = 0;
  const visit = () => {
    visits++;
    return ask(ports.http);
  };
  const options = { servername: host, rejectUnauthorized: false }; // the local CA is known to this service only
  const secure = async () => 'getPeerCertificate' in (await handshake(ports.tls, options));
  assert.ok(await secure());
  assert.equal((await visit()).body, 'before');
  await until('it is stored', async () => (await storedRequests(db)) === visits);
  await postgres.pause();
  routed.service.killAll();
  await routed.service.exited;
  routed.startAgain();
  await until('workers serve', () => routed.service.output().split('"accepts requests"').length === 3, 60_000);
  const probed = await fetch(`http://127.0.0.1:${ports.http}/readyz`); // as a kubelet asks it
  assert.deepEqual([probed.status, await probed.text()], [200, 'ok\n']);
  const backAt = Date.now() + awayMs;
  const load = startLoad(4, visit);
  try {
    await until('the time to be over', () => visits > 200 && Date.now() > backAt, awayMs + 60_000);
    assert.ok(await secure());
    await postgres.resume();
    await routeTo(db, 2, [await named('after')]);
    await until('a change to be in force', async () => (await visit()).body === 'after', 60_000);
  } finally {
    await load.stop();
  }
  assert.deepEqual(load.failed, []);
  await until('all are stored', async () => (await storedRequests(db)) >= visits);
  assert.equal(await storedRequests(db), visits);
  console.log(`${visits} requests, the first without a database: none failed, each counted once`);
});
