// What routers measured, in the database.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latencyBoundsMs } from '../../../src/traffic/latency.ts';
import { bucketMs } from '../../../src/traffic/measurements.ts';
import { deleteTrafficBefore, listTraffic, storeMeasurements } from '../../../src/traffic/traffic-queries.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const t = sharedApp();

const at = 1_800_000_000_000;
const latency = new Array<number>(latencyBoundsMs.length + 1).fill(0).with(3, 5);
const measured = (project: string, requests: number, clientErrors?: number) => ({
  project,
  environment: 'production',
  revision: 1,
  at,
  requests,
  errors: 1,
  ...(clientErrors !== undefined && { clientErrors }),
  latency,
});

test('20,000 busy environments are stored with one statement', async () => {
  const { db } = t.app.store;
  await storeMeasurements(
    db,
    'router',
    Array.from({ length: 20_000 }, (_, n) => measured(`prj_${n}`, 5)),
  );
  const { count } = await db
    .selectFrom('traffic')
    .select((e) => e.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  assert.equal(Number(count), 20_000);
});

test('a later count of a bucket replaces the earlier one of the same router, and adds to those of others', async () => {
  const { db } = t.app.store;
  const key = { projectId: 'prj_shop', environment: 'production' };
  await storeMeasurements(db, 'one', [measured('prj_shop', 5, 1)]);
  await storeMeasurements(db, 'one', [measured('prj_shop', 8, 3)]);
  await storeMeasurements(db, 'two', [measured('prj_shop', 2)]);
  const stored = await listTraffic(db, { ...key, revision: 1 }, at, at + bucketMs);
  const sum = (field: 'requests' | 'errors' | 'clientErrors') => stored.reduce((total, row) => total + row[field], 0);
  assert.deepEqual([sum('requests'), sum('errors'), sum('clientErrors')], [10, 2, 3]);
});

test('old ones are deleted a minute at a time, the oldest first, and later ones stay', async () => {
  const { db } = t.app.store;
  const minutes = [-50, -49, -3, 0];
  const rows = minutes.map((minute) => ({ ...measured('prj_old', 1), at: at + minute * 60_000 }));
  await storeMeasurements(db, 'router', rows);
  const left = async () => {
    const found = await listTraffic(db, { projectId: 'prj_old', environment: 'production', revision: 1 }, 0, at + 1);
    return found.map((row) => (row.at - at) / 60_000).sort((a, b) => a - b);
  };
  const steps: [boolean, number[]][] = [];
  for (let more = true; more; ) {
    more = await deleteTrafficBefore(db, at - 60_000);
    steps.push([more, await left()]);
  }
  assert.deepEqual(steps, [
    [true, [-49, -3, 0]],
    [true, [-3, 0]],
    [true, [0]],
    [false, [0]],
  ]);
});
