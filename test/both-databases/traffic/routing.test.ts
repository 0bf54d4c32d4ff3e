// What routers read of the routing table, and when an instance has left it everywhere.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { listRouted, markInstance, unrouteInstance } from '../../../src/deployments/instance-queries.ts';
import { latencyBoundsMs } from '../../../src/traffic/latency.ts';
import { forgetDeleted, loadAll, loadChanges } from '../../../src/traffic/load-routes.ts';
import { bucketMs } from '../../../src/traffic/measurements.ts';
import { deleteEndedRouters } from '../../../src/traffic/router-register.ts';
import { insertDrain, RouterWatch } from '../../../src/traffic/router-watch.ts';
import {
  listTraffic,
  markRoutingChanged,
  readRoutingState,
  storeMeasurements,
} from '../../../src/traffic/traffic-queries.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const t = sharedApp({ env: { SLUICE_ROLES: 'api', SLUICE_QUOTAS: 'environments=none' } });
const environments = 10_000;
const atOnce = 500;
const name = (n: number) => `e${String(n).padStart(5, '0')}`;
let projectId = '';

/** Rows as the API writes them, many at a time. */
async function seed(): Promise<void> {
  const { db } = t.app.store;
  const { body } = await t.call('POST', '/v1/projects', { body: { name: 'Many' } });
  projectId = body.id;
  const pattern = await db
    .selectFrom('environment')
    .selectAll()
    .where('project_id', '=', projectId)
    .executeTakeFirstOrThrow();
  for (let from = 0; from < environments; from += atOnce) {
    const numbers = Array.from({ length: atOnce }, (_, i) => from + i);
    const of = (n: number) => ({ project_id: projectId, environment: name(n) });
    await db.transaction().execute(async (tx) => {
      await tx
        .insertInto('environment')
        .values(numbers.map((n) => ({ ...pattern, name: name(n), host: `many-${name(n)}` })))
        .execute();
      await tx
        .insertInto('revision')
        .values(
          numbers.map((n) => ({
            ...{ ...of(n), number: 1, deployment_id: 'dep', image: 'app', digest: null, port: 80 },
            ...{ variables_sealed: null, health_check: '{}', resources: '{}' },
            ...{ state: 'active' as const, traffic_percent: 100, restored_from: null },
            ...{ created_at: 1, activated_at: 1, retired_at: null },
          })),
        )
        .execute();
      await tx
        .insertInto('instance')
        .values(
          numbers.map((n) => ({
            ...{ ...of(n), id: `ins_${n}`, revision: 1, region: 'local', state: 'healthy' as const },
            ...{ host: '127.0.0.1', port: 1, created_at: 1, state_since: 1 },
          })),
        )
        .execute();
    });
  }
}

function reading() {
  before(seed);

  test('10,000 environments come whole in pages, a change comes alone', async () => {
    const { db } = t.app.store;
    const pages = await Array.fromAsync(loadAll(db, 'localhost'));
    const all = pages.flat();
    assert.equal(all.length, environments);
    assert.equal(new Set(all.map(({ environment }) => environment)).size, environments);
    assert.ok(pages.every((page) => page.length <= 200));
    for (let n = 0; n < 9; n++) await markRoutingChanged(db, { projectId, environment: name(n) });
    const { version } = await readRoutingState(db);
    const took: number[] = [];
    for (let n = 1; n <= 9; n++) {
      const startedAt = performance.now();
      assert.equal((await loadChanges(db, 'localhost', version - n)).environments.length, n);
      took.push(performance.now() - startedAt);
    }
    const median = took.sort((a, b) => a - b)[4]!.toFixed(1);
    console.log(`a change of ${environments} environments is read in ${median} ms (median of 9)`);
    await db.transaction().execute(async (tx) => {
      await tx.updateTable('instance').set({ port: 2 }).where('id', '=', 'ins_77').execute();
      await markRoutingChanged(tx, { projectId, environment: name(77) });
    });
    const changes = await loadChanges(db, 'localhost', version);
    assert.equal(changes.version, version + 1);
    assert.deepEqual(changes.environments, [
      {
        project: projectId,
        environment: name(77),
        hosts: [{ name: `many-${name(77)}.localhost`, secure: false }],
        shares: [{ revision: 1, percent: 100, targets: [{ instance: 'ins_77', host: '127.0.0.1', port: 2 }] }],
      },
    ]);
  });

  test('an instance without an address is not routed', async () => {
    const { db } = t.app.store;
    const { version } = await readRoutingState(db);
    const setHost = async (host: string) => {
      await db.updateTable('instance').set({ host }).where('id', '=', 'ins_3').execute();
      await markRoutingChanged(db, { projectId, environment: name(3) });
      const [routes] = (await loadChanges(db, 'localhost', version)).environments;
      return routes!.shares[0]!.targets.length;
    };
    assert.deepEqual([await setHost(''), await setHost('127.0.0.1')], [0, 1]);
  });

  test('one that could not be reached is routed only while no instance of its environment is healthy', async () => {
    const { db } = t.app.store;
    const { version } = await readRoutingState(db);
    const own = { project_id: projectId, environment: name(4), revision: 1, region: 'local' };
    const second = { ...own, id: 'ins_second', host: '127.0.0.1', port: 9, created_at: 1, state_since: 1 };
    await db
      .insertInto('instance')
      .values({ ...second, state: 'healthy' })
      .execute();
    const targetsWhen = async (...states: [id: string, state: 'healthy' | 'unhealthy', isFallback: boolean][]) => {
      for (const [id, state, isFallback] of states) {
        assert.ok(await markInstance(db, id, ['healthy', 'unhealthy'], state, 1, isFallback));
      }
      await markRoutingChanged(db, { projectId, environment: name(4) });
      const [routes] = (await loadChanges(db, 'localhost', version)).environments;
      return routes!.shares[0]!.targets.map(({ instance }) => instance);
    };
    assert.deepEqual(await targetsWhen(['ins_4', 'unhealthy', true]), ['ins_second']);
    assert.deepEqual(await targetsWhen(['ins_second', 'unhealthy', true]), ['ins_4', 'ins_second']);
    assert.deepEqual(await targetsWhen(['ins_4', 'unhealthy', false]), ['ins_second']);
    const moved = (await listRouted(db, 'local')).find(({ id }) => id === 'ins_second')!;
    assert.ok(await unrouteInstance(db, moved, 1));
    assert.deepEqual(await targetsWhen(), []);
    assert.deepEqual(await targetsWhen(['ins_4', 'healthy', false]), ['ins_4']);
  });

  test('more changes than a page holds come in order, none twice, none missing', async () => {
    const { db } = t.app.store;
    const { version } = await readRoutingState(db);
    await db.transaction().execute(async (tx) => {
      for (let n = 0; n < 450; n++) await markRoutingChanged(tx, { projectId, environment: name(n) });
    });
    const seen: string[] = [];
    for (let since = version; ; ) {
      const changes = await loadChanges(db, 'localhost', since);
      if (changes.environments.length === 0) break;
      assert.ok(changes.version > since);
      since = changes.version;
      seen.push(...changes.environments.map(({ environment }) => environment));
    }
    assert.deepEqual(new Set(seen), new Set(Array.from({ length: 450 }, (_, n) => name(n))));
  });

  test('a deleted project takes its environments out, and is forgotten later', async () => {
    const { db } = t.app.store;
    const { version } = await readRoutingState(db);
    const { status, body } = await t.call('POST', '/v1/projects', { body: { name: 'Short' } });
    assert.equal(status, 201, JSON.stringify(body));
    assert.equal((await t.call('DELETE', `/v1/projects/${body.id}`)).status, 204);
    const changes = await loadChanges(db, 'localhost', version);
    assert.deepEqual(
      changes.environments.map(({ project, hosts }) => [project, hosts]),
      [[body.id, []]],
    );
    await forgetDeleted(db, changes.version);
    assert.deepEqual((await loadChanges(db, 'localhost', version)).environments, []);
    assert.ok((await readRoutingState(db)).floor > version, 'who is behind has to load all');
  });
}

function draining() {
  const routers = (db = t.app.store.db) => db.insertInto('router');
  const leaseMs = 5000;

  test('an instance is unrouted once every router that lives has the version without it', async () => {
    const { db } = t.app.store;
    const clock = { ms: 1_000_000, now: () => clock.ms };
    const watch = new RouterWatch({ db, clock, leaseMs });
    await db.deleteFrom('router').execute();
    await db.transaction().execute((tx) => insertDrain(tx, 'ins_1', 10));
    await routers()
      .values([
        { id: 'near', version: 10, beat: 1 },
        { id: 'far', version: 9, beat: 1 },
      ])
      .execute();
    assert.equal(await watch.unroutedForMs('ins_1'), null);
    clock.ms += 3_600_000; // the clock jumps
    assert.equal(await watch.unroutedForMs('ins_1'), null, 'a jump ends no lease');
    for (let i = 0; i < 3; i++) {
      clock.ms += 1000;
      assert.equal(await watch.unroutedForMs('ins_1'), null);
    }
    await db.updateTable('router').set({ beat: 2 }).where('id', '=', 'far').execute();
    for (let i = 0; i < 5; i++) {
      clock.ms += 1000;
      assert.equal(await watch.unroutedForMs('ins_1'), null, 'it was heard of');
    }
    clock.ms += 1000;
    assert.equal(await watch.unroutedForMs('ins_1'), 0, 'its lease has ended');
    clock.ms += 1000;
    await watch.sweep();
    assert.equal(await watch.unroutedForMs('ins_1'), 1000);
    await db.updateTable('router').set({ beat: 3 }).where('id', '=', 'far').execute();
    const another = new RouterWatch({ db, clock, leaseMs });
    assert.equal(await another.unroutedForMs('ins_1'), 1000, 'another process goes on from there');
  });

  test('processes that live for two seconds each end a lease and a drain together', async () => {
    const { db } = t.app.store;
    await db.deleteFrom('router').execute();
    await db.transaction().execute((tx) => insertDrain(tx, 'ins_3', 10));
    await routers().values({ id: 'killed', version: 9, beat: 1 }).execute();
    const waited: (number | null)[] = [];
    for (let life = 0; life < 5; life++) {
      const clock = { ms: 1_000_000 - life * 3_600_000, now: () => clock.ms };
      const watch = new RouterWatch({ db, clock, leaseMs });
      for (let second = 0; second < 3; second++, clock.ms += 1000) waited.push(await watch.unroutedForMs('ins_3'));
    }
    assert.deepEqual(
      waited.slice(0, 6),
      Array.from({ length: 6 }, () => null),
    );
    assert.deepEqual(waited.slice(-6), [1000, 2000, 3000, 3000, 4000, 5000]);
    await db.updateTable('router').set({ beat: 2 }).execute();
    await db.transaction().execute((tx) => insertDrain(tx, 'ins_3', 11));
    const back = new RouterWatch({ db, clock: { now: () => 1_000_000 }, leaseMs });
    assert.equal(await back.unroutedForMs('ins_3'), null, 'it is heard of again');
  });

  test('the only process on a database knows that routers within earlier ones have ended, and of workers it does not', async () => {
    const { db } = t.app.store;
    await db.deleteFrom('router').execute();
    await routers()
      .values(['run_1', 'rtr_1'].map((id) => ({ id, version: 1, beat: 1 })))
      .execute();
    await deleteEndedRouters(db);
    const left = await db.selectFrom('router').select('id').execute();
    assert.deepEqual(
      left.map(({ id }) => id),
      ['rtr_1'],
    );
  });

  test('a router that moves ends the wait at once; rows of those long gone are swept', async () => {
    const { db } = t.app.store;
    const clock = { ms: 1_000_000, now: () => clock.ms };
    const watch = new RouterWatch({ db, clock, leaseMs });
    await db.deleteFrom('router').execute();
    await db.transaction().execute((tx) => insertDrain(tx, 'ins_2', 10));
    await routers().values({ id: 'slow', version: 9, beat: 1 }).execute();
    assert.equal(await watch.unroutedForMs('ins_2'), null);
    await db.updateTable('router').set({ version: 11 }).execute();
    assert.equal(await watch.unroutedForMs('ins_2'), 0);
    for (let i = 0; i < 60; i++) {
      clock.ms += 1000;
      await watch.sweep();
    }
    assert.deepEqual(await db.selectFrom('router').select('id').execute(), []);
  });
}

test('an earlier count that arrives late does not replace a later one', async () => {
  const { db } = t.app.store;
  const at = 1_800_000_000_000;
  const latency = new Array<number>(latencyBoundsMs.length + 1).fill(0);
  const measured = (requests: number, errors: number) => [
    { project: 'prj_late', environment: 'production', revision: 1, at, requests, errors, latency },
  ];
  for (const [requests, errors] of [
    [5, 0],
    [8, 0],
    [5, 0],
    [8, 1],
  ] as const) {
    await storeMeasurements(db, 'one', measured(requests, errors));
  }
  const of = { projectId: 'prj_late', environment: 'production', revision: 1 };
  const stored = await listTraffic(db, of, at, at + bucketMs);
  assert.deepEqual(
    stored.map(({ requests, errors }) => [requests, errors]),
    [[8, 1]],
  );
});

describe('reading routes', reading);
describe('draining by acknowledgement', draining);
