// An instance that is no longer where the table says leaves the table, with all others of its region that moved, before any
// pass knows what runs.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ChangedMeanwhile } from '../../../src/db/guarded.ts';
import { lockHealthy } from '../../../src/deployments/instance-queries.ts';
import { EngineLists, unrouteMoved } from '../../../src/deployments/reconcile/engine-lists.ts';
import { type Engine, type EngineInstance, runSets } from '../../../src/engines/engine.ts';
import { createStandinEngine } from '../../../src/engines/standin/standin.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLog } from '../../../src/lib/log.ts';
import { ids } from '../../helpers/instances.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { instancesOf } from './deployments-fixture.ts';

/** Does not reconcile: the tests do what a pass would. */
const t = sharedApp({ tokenLimit: 1_000_000, env: { SLUICE_ROLES: 'api' } });
const host = '127.0.0.1';
const log = createLog({ level: 'silent', format: 'json' });

describe('a list of what an engine runs', () => {
  /** A project with a healthy instance at this port. */
  async function openAt(region: string, port: number) {
    const shop = await Shop.open(t.url);
    const id = ids('ins');
    const whose = { project_id: shop.project, environment: 'production', revision: 1 };
    await t.app.store.db
      .insertInto('instance')
      .values({ id, ...whose, region, state: 'healthy', host, port, created_at: 1, state_since: 1 })
      .execute();
    const running = (at: number | null): EngineInstance => ({
      ...{ id, project: shop.project, environment: 'production', revision: 1, exitCode: null },
      ...(at === null ? { state: 'exited', address: null } : { state: 'running', address: { host, port: at } }),
    });
    const version = async () => {
      const { db } = t.app.store;
      const row = db.selectFrom('routing').select('version').where('project_id', '=', shop.project);
      return Number((await row.executeTakeFirst())?.version ?? 0);
    };
    return { shop, running, version, state: async () => (await instancesOf(t.app.store.db, shop))[0]!.state };
  }

  /** What each pass is given is what the engine is said to run. */
  function lists(region: string) {
    const listInTurn = listsInTurn(region);
    return (...running: EngineInstance[]) => listInTurn(running);
  }

  /** The engine is said to run one after the other, each time that it is asked. */
  function listsInTurn(region: string) {
    let answers: EngineInstance[][] = [];
    const list = async () => (answers.length > 1 ? answers.shift()! : answers[0]!);
    const engine: Engine = { ...runSets(createStandinEngine()), list };
    const asked = new EngineLists(systemClock, unrouteMoved({ db: t.app.store.db, clock: systemClock, log }));
    return async (...inTurn: EngineInstance[][]) => {
      answers = inTurn;
      asked.clear();
      await asked.of({ name: region, engine, available: true, lastCheckedAt: null });
    };
  }

  test('two that exchanged their ports are both out of the table before a pass has the list', async () => {
    const region = ids('region');
    const [a, b, c] = [await openAt(region, 32_768), await openAt(region, 32_769), await openAt(region, 32_770)];
    const list = lists(region);
    await list(a.running(32_768), b.running(32_769), c.running(32_770));
    const before = await Promise.all([a, b, c].map(({ version }) => version()));
    assert.deepEqual(await Promise.all([a, b, c].map(({ state }) => state())), ['healthy', 'healthy', 'healthy']);
    await list(a.running(32_769), b.running(32_768), c.running(32_770));
    assert.deepEqual(await Promise.all([a, b, c].map(({ state }) => state())), ['unhealthy', 'unhealthy', 'healthy']);
    const after = await Promise.all([a, b, c].map(({ version }) => version()));
    assert.deepEqual(
      after.map((version, i) => version > before[i]!),
      [true, true, false],
    );
  });

  test('one that ended, or is gone, leaves too; so does one that moved while no process looked', async () => {
    const region = ids('region');
    const [a, b, c] = [await openAt(region, 32_768), await openAt(region, 32_769), await openAt(region, 32_770)];
    const list = lists(region);
    await list(a.running(32_768), b.running(32_769), c.running(32_999));
    assert.deepEqual(await Promise.all([a, b, c].map(({ state }) => state())), ['healthy', 'healthy', 'unhealthy']);
    await list(a.running(null), c.running(32_999));
    assert.deepEqual(await Promise.all([a, b].map(({ state }) => state())), ['unhealthy', 'unhealthy']);
  });

  test('nothing is decided for one that left after it was read', async () => {
    const region = ids('region');
    const [a, b] = [await openAt(region, 32_768), await openAt(region, 32_769)];
    const list = lists(region);
    await list(a.running(32_768), b.running(32_769));
    const { db } = t.app.store;
    const rows = (await Promise.all([a, b].map(({ shop }) => instancesOf(db, shop)))).flat();
    const rely = () => db.transaction().execute((tx) => lockHealthy(tx, rows));
    await rely();
    await list(a.running(32_999), b.running(32_769));
    await assert.rejects(rely(), ChangedMeanwhile);
    await db.transaction().execute((tx) => lockHealthy(tx, [{ ...rows[0]!, state: 'unhealthy' }, rows[1]!]));
  });

  test('one that is healthy by now, and was about to start when the list was made, stays', async () => {
    const region = ids('region');
    const a = await openAt(region, 32_768);
    const list = listsInTurn(region);
    const before = await a.version();
    await list([{ ...a.running(null), state: 'created' }], [a.running(32_768)]);
    await list([a.running(32_999)], [a.running(32_768)]);
    assert.deepEqual([await a.state(), await a.version()], ['healthy', before]);
    await list([a.running(32_999)], [a.running(32_999)]);
    assert.equal(await a.state(), 'unhealthy');
  });

  test('one that this engine never ran is left to the pass of its environment', async () => {
    const region = ids('region');
    const a = await openAt(region, 32_768);
    const list = lists(region);
    await list();
    await list();
    assert.equal(await a.state(), 'healthy');
  });
});
