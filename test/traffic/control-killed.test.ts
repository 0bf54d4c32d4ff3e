// The control process is killed again and again while visitors come: they do not notice, and what they did is counted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, named } from '../helpers/router.ts';
import { routeTo, seedEnvironment, startControl, startLoad, storedRequests } from '../helpers/router-control.ts';
import { until } from '../helpers/wait.ts';
import { openWorkers } from '../helpers/workers.ts';

/** More with SLUICE_TEST_KILLS, on a machine that has the time. */
const kills = Number(process.env.SLUICE_TEST_KILLS ?? 3);

test('SIGKILL of the control process under load, with a change each time: nothing fails, each request counts once', async () => {
  const workers = openWorkers();
  const { db } = await seedEnvironment(workers, null);
  await routeTo(db, 1, [await named('1')]);
  let control = startControl(workers, null);
  await control.ready;
  await Promise.all([workers.start(), workers.start()].map(({ ready }) => ready));
  let visits = 0;
  const visit = () => {
    visits++;
    return ask(workers.ports.http);
  };
  const load = startLoad(4, visit);
  for (let revision = 2; revision < kills + 2; revision++) {
    await routeTo(db, revision, [await named(String(revision))]);
    const isKnown = async () => (await visit()).body === String(revision);
    // Every other time it is killed before the workers can know.
    if (revision % 2 === 0) await until('the change is in force', isKnown);
    await control.kill();
    control = startControl(workers, null);
    await control.ready;
    await until('the change is in force', isKnown);
  }
  await load.stop();
  assert.deepEqual(load.failed, []);
  assert.ok(visits > kills * 50, `${visits}`);
  await until('all are stored', async () => (await storedRequests(db)) >= visits);
  assert.equal(await storedRequests(db), visits);
  console.log(`${visits} requests over ${kills} kills: none failed, each counted once`);
});
