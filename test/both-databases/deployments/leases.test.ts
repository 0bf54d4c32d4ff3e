// Who reconciles an environment, and that a process which was paused too long changes nothing when it goes on.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  databaseLeases,
  type EnvironmentLease,
  EnvironmentLeaseLost,
  type EnvironmentLeases,
  onlyProcess,
} from '../../../src/deployments/reconcile/environment-leases.ts';
import { Reconciler } from '../../../src/deployments/reconcile/reconciler.ts';
import { type Engine, runSets } from '../../../src/engines/engine.ts';
import { createStandinEngine } from '../../../src/engines/standin/standin.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createIds } from '../../../src/lib/ids.ts';
import { createLog } from '../../../src/lib/log.ts';
import { createLoops } from '../../../src/lib/loops.ts';
import { Regions } from '../../../src/regions/regions.ts';
import { RouterWatch } from '../../../src/traffic/router-watch.ts';
import { onPostgres } from '../../helpers/app.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image, instancesOf } from './deployments-fixture.ts';

// Its own reconciler rests: the tests bring theirs.
const t = sharedApp({ tokenLimit: 1_000_000, env: { SLUICE_ROLES: 'api' } });
const ids = createIds(systemClock);
const note = (lease: EnvironmentLease, name: string) =>
  lease.write((tx) => tx.insertInto('meta').values({ name, value: 'written' }).execute());
const isNoted = async (name: string) =>
  (await t.app.store.db.selectFrom('meta').select('value').where('name', '=', name).executeTakeFirst()) !== undefined;

describe('the only process', () => {
  test('writes in transactions', async () => {
    const lease = (await onlyProcess(t.app.store.db).hold({ projectId: 'prj', environment: 'live' }))!;
    await note(lease, 'only');
    assert.ok(await isNoted('only'));
    const failing = lease.write(async (tx) => {
      await tx.deleteFrom('meta').where('name', '=', 'only').execute();
      throw new Error('changed its mind');
    });
    await assert.rejects(failing, /changed its mind/);
    assert.ok(await isNoted('only'));
  });
});

if (onPostgres) {
  describe('leases', () => {
    const expire = (environment: string) =>
      t.app.store.db
        .updateTable('environment_lease')
        .set({ until: 0 })
        .where('environment', '=', environment)
        .execute();
    const fenceOf = async (environment: string) =>
      (
        await t.app.store.db
          .selectFrom('environment_lease')
          .select('fence')
          .where('environment', '=', environment)
          .executeTakeFirstOrThrow()
      ).fence;

    test('one process at a time; a clock that is an hour ahead takes nothing', async () => {
      const { db } = t.app.store;
      const key = { projectId: 'prj', environment: 'clocks' };
      const ahead = { now: () => Date.now() + 3600_000 };
      const [one, other] = [databaseLeases(db, 'one', systemClock), databaseLeases(db, 'other', ahead)];
      assert.ok(await one.hold(key));
      assert.equal(await other.hold(key), null);
      await one.release(key);
      assert.ok(await other.hold(key));
      assert.equal(await one.hold(key), null);
    });

    test('each holder has a higher fence, also after a release; a renewal keeps it', async () => {
      const { db } = t.app.store;
      const key = { projectId: 'prj', environment: 'fences' };
      const [one, other] = [databaseLeases(db, 'one', systemClock, 0), databaseLeases(db, 'other', systemClock, 0)];
      await one.hold(key);
      const first = await fenceOf('fences');
      await one.hold(key);
      assert.equal(await fenceOf('fences'), first);
      await expire('fences');
      await other.hold(key);
      const second = await fenceOf('fences');
      await other.release(key);
      await one.hold(key);
      const third = await fenceOf('fences');
      assert.ok(first < second && second < third, `${first} ${second} ${third}`);
    });

    test('who lost a lease writes nothing and confirms nothing, even before it knows', async () => {
      const { db } = t.app.store;
      const key = { projectId: 'prj', environment: 'lost' };
      const [one, other] = [databaseLeases(db, 'one', systemClock), databaseLeases(db, 'other', systemClock)];
      const stale = (await one.hold(key))!;
      await note(stale, 'held');
      await expire('lost');
      const current = (await other.hold(key))!;
      assert.equal(await one.hold(key), stale, 'it has renewed it lately, and does not ask');
      await assert.rejects(note(stale, 'stale'), EnvironmentLeaseLost);
      await assert.rejects(stale.confirm(), EnvironmentLeaseLost);
      assert.deepEqual([await isNoted('held'), await isNoted('stale')], [true, false]);
      assert.equal(await one.hold(key), null, 'now it asks');
      await current.confirm();
    });

    test('the lease is not taken while its holder is writing', async () => {
      const { db } = t.app.store;
      const key = { projectId: 'prj', environment: 'writing' };
      const [one, other] = [databaseLeases(db, 'one', systemClock), databaseLeases(db, 'other', systemClock)];
      const lease = (await one.hold(key))!;
      await expire('writing');
      const order: string[] = [];
      let taking: Promise<unknown> = Promise.resolve();
      await lease.write(async (tx) => {
        taking = other.hold(key).then(() => order.push('taken'));
        await new Promise((resolve) => setTimeout(resolve, 200));
        order.push('written');
        await tx.insertInto('meta').values({ name: 'writing', value: '1' }).execute();
      });
      await taking;
      assert.deepEqual(order, ['written', 'taken']);
    });
  });

  describe('a process that is paused in the middle of a pass', () => {
    const engine = runSets(createStandinEngine());
    const log = createLog({ level: 'silent', format: 'json' });
    const running: Reconciler[] = [];
    after(async () => {
      for (const reconciler of running) await reconciler.stop();
      await engine.close();
    });

    function start(through: Engine, leases: EnvironmentLeases): void {
      const { db, seal } = t.app.store;
      const regions = new Regions([{ name: 'local', engine: through }], systemClock, log);
      const loops = createLoops(log);
      const reconciler = new Reconciler({
        db,
        seal,
        ids,
        clock: systemClock,
        log,
        loops,
        regions,
        logins: { find: async () => null },
        leases,
        routers: new RouterWatch({ db, clock: systemClock, leaseMs: 60_000 }),
        pullTimeoutS: 60,
        instancePorts: { first: 20_000, last: 29_999 },
        random: Math.random,
      });
      running.push(reconciler);
      reconciler.start();
    }

    /** The engine as a process sees it that can be paused whenever it asks what runs. */
    function pausable() {
      let pause: Promise<void> | null = null;
      let waiting = 0;
      const stopped: string[] = [];
      const seen: Engine = {
        ...engine,
        async list() {
          const list = await engine.list();
          if (pause) waiting++;
          await pause;
          return list;
        },
        stop(id, graceS) {
          stopped.push(id);
          return engine.stop(id, graceS);
        },
      };
      const hold = () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        pause = promise;
        return () => {
          pause = null;
          resolve();
        };
      };
      return { seen, hold, stopped, isPaused: () => waiting > 0 };
    }

    /** Tells how often the process was refused the lease. */
    function counting(leases: EnvironmentLeases): EnvironmentLeases & { refused: number } {
      const counted = {
        ...leases,
        refused: 0,
        async hold(key: Parameters<EnvironmentLeases['hold']>[0]) {
          const lease = await leases.hold(key);
          if (!lease) counted.refused++;
          return lease;
        },
      };
      return counted;
    }

    let shop: Shop;
    before(async () => {
      shop = await Shop.open(t.url, { replicas: 2 });
    });

    test('drains and stops nothing any more: what the other process decided stays', async () => {
      const { db } = t.app.store;
      const slow = pausable();
      const slowLeases = counting(databaseLeases(db, 'slow', systemClock, 1000));
      start(slow.seen, slowLeases);
      await shop.released(image(1));
      const healthy = async () => {
        const rows = await instancesOf(db, shop);
        return rows.length === 2 && rows.every(({ state }) => state === 'healthy') && rows;
      };
      const rows = await until('two healthy instances', healthy);
      const goOn = slow.hold();
      await shop.set({ replicas: 1 });
      await until('the pass that would drain one', slow.isPaused);
      await shop.set({ replicas: 2 });
      const lease = db.selectFrom('environment_lease').select('until').where('project_id', '=', shop.project);
      await until('its lease to run out', async () => (await lease.executeTakeFirstOrThrow()).until < Date.now());
      const other = pausable();
      start(other.seen, databaseLeases(db, 'other', systemClock));
      const owner = async () =>
        (await db.selectFrom('environment_lease').select('owner').where('project_id', '=', shop.project).execute())[0];
      await until('the other to take over', async () => (await owner())?.owner === 'other');
      goOn();
      await until('the paused process to find out', () => slowLeases.refused > 0);
      assert.deepEqual(slow.stopped, []);
      assert.deepEqual(other.stopped, []);
      assert.deepEqual(await healthy(), rows);
      assert.equal((await owner())?.owner, 'other');
    });
  });
}
