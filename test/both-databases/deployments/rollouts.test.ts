// Rollouts of each strategy, with visitors.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { eventsOf, image, instancesOf } from './deployments-fixture.ts';

const t = sharedApp({ tokenLimit: 1_000_000 }); // these tests poll more than a client should

const open = (settings?: object) => Shop.open(t.url, settings);

describe('rolling out', () => {
  test('the first deployment serves, and ends with an event', async () => {
    const shop = await open({ replicas: 2 });
    const done = await shop.released(image(1));
    assert.deepEqual(
      done.timeline.map((entry) => entry.state),
      ['queued', 'preparing', 'starting', 'promoting', 'succeeded'],
    );
    assert.match(done.digest!, /^sha256:[0-9a-f]{64}$/);
    const visit = await shop.visit();
    assert.deepEqual([visit.status, visit.image, visit.revision], [200, image(1), 'r1']);
    assert.equal(visit.cookie, undefined, 'no cookie while there is nothing to choose');
    const environment = await shop.environment();
    assert.equal(environment.active_revision, 'r1');
    assert.deepEqual(environment.traffic, [{ revision: 'r1', percent: 100 }]);
    assert.equal(environment.in_progress_deployment, null);
    assert.deepEqual(
      (await eventsOf(t.app.store.db, shop)).map(({ type }) => type),
      ['deployment.created', 'deployment.succeeded'],
    );
  });

  test('under constant load rolling, blue_green, canary, abort and rollback in a row: 0 failed requests', async () => {
    const shop = await open({ replicas: 2, canary: { bake_s: 1, min_requests: 5 } });
    await shop.released(image(1));
    const load = shop.load();
    await shop.released(image(2), { strategy: 'rolling' });
    await shop.released(image(3), { strategy: 'blue_green' });
    await shop.released(image(4), { strategy: 'canary', canary_percent: 20 });
    const aborted = await shop.deploy(image(5), { strategy: 'canary', canary_percent: 50 });
    await shop.reaches(aborted.id, 'canary');
    assert.equal((await shop.api('POST', `/deployments/${aborted.id}/abort`)).status, 200);
    await shop.reaches(aborted.id, 'canceled');
    const { status, body } = await shop.api('POST', '/environments/production/rollback', { reason: 'try' });
    assert.equal(status, 201);
    const rolledBack = await shop.reaches(body.id, 'succeeded');
    assert.equal(rolledBack.kind, 'rollback');
    await until('200 visits', () => load.visits() > 200);
    const { failed } = await load.stop();
    assert.deepEqual(failed, []);
    assert.equal((await shop.visit()).image, image(3));
    const kinds = (await eventsOf(t.app.store.db, shop)).filter(({ type }) => type === 'revision.rolled_back');
    assert.deepEqual(
      kinds.map(({ data }) => [data.id, data.cause, data.state]),
      [
        ['r5', 'abort', 'rolled_back'],
        ['r4', 'manual', 'rolled_back'],
      ],
    );
  });

  test('2,000 requests at 10 %: the canary’s share is within 1 percentage point; a visitor never flips back', async () => {
    const shop = await open({ canary: { advance: 'manual', steps: [40] } });
    await shop.released(image(1));
    const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 10 });
    await shop.reaches(id, 'canary');
    await until('both to serve', async () => ((await shop.visit()).cookie ? true : undefined));
    const counts: Record<string, number> = {};
    const sides = new Map<string, string>();
    const visitors = Array.from({ length: 8 }, async () => {
      for (let i = 0; i < 250; i++) {
        const { revision, cookie } = await shop.visit();
        counts[revision!] = (counts[revision!] ?? 0) + 1;
        if (sides.size < 200) sides.set(cookie!, revision!);
      }
    });
    await Promise.all(visitors);
    const share = (100 * counts.r2!) / 2000;
    assert.ok(Math.abs(share - 10) < 1, `${share} %`);
    await shop.api('POST', `/deployments/${id}/promote`);
    await until('40 %', async () => ((await shop.environment()).traffic[1]?.percent === 40 ? true : undefined));
    let moved = 0;
    for (const [cookie, side] of sides) {
      const { revision } = await shop.visit(cookie);
      if (side === 'r2') assert.equal(revision, 'r2', 'no visitor flips back');
      else if (revision === 'r2') moved++;
    }
    assert.ok(moved > 20, `${moved} moved forward`);
    await shop.api('POST', `/deployments/${id}/abort`);
    await shop.reaches(id, 'canceled');
  });

  test('a canary goes through its steps and ends with all traffic', async () => {
    const shop = await open({ canary: { bake_s: 1, steps: [50, 80], min_requests: 0 } });
    await shop.released(image(1));
    const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 5 });
    const done = await shop.reaches(id, 'succeeded');
    const shares = done.timeline.flatMap(({ message }) => /^(\d+) % of requests/.exec(message)?.[1] ?? []);
    assert.deepEqual(shares, ['5', '50', '80']);
    assert.equal((await shop.revision('r1')).state, 'superseded');
    assert.equal((await shop.revision('r2')).state, 'active');
  });

  test('a canary that answers 500 is aborted by analysis; the stable revision serves everything', async () => {
    const shop = await open({ canary: { bake_s: 30, min_requests: 10 } });
    await shop.released(image(1));
    await shop.set({ variables: { STANDIN_ERROR_RATE: '1' } });
    const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
    await shop.reaches(id, 'canary');
    const load = shop.load(2);
    const failed = await shop.reaches(id, 'failed');
    await load.stop();
    assert.equal(failed.failure!.code, 'analysis_failed');
    assert.match(failed.failure!.message, /^The canary is worse: (\d+) of \1 requests failed \(100 %\)/);
    assert.deepEqual((await shop.environment()).traffic, [{ revision: 'r1', percent: 100 }]);
    for (let i = 0; i < 20; i++) assert.equal((await shop.visit()).revision, 'r1');
    assert.deepEqual((await shop.revision('r2')).state, 'rolled_back');
    const told = (await eventsOf(t.app.store.db, shop)).slice(-2);
    assert.deepEqual(
      told.map(({ type }) => type),
      ['revision.rolled_back', 'deployment.failed'],
    );
    assert.equal(told[0]!.data.cause, 'analysis');
  });

  test('a canary that fails is undone in its warm-up', async () => {
    const shop = await open({ canary: { bake_s: 1, warmup_s: 600 } });
    await shop.released(image(1));
    await shop.set({ variables: { STANDIN_ERROR_RATE: '1' } });
    const load = shop.load(2);
    const { id } = await shop.deploy(image(2), { strategy: 'canary' });
    const failed = await shop.reaches(id, 'failed');
    await load.stop();
    assert.match(
      failed.failure!.message,
      /^The canary is worse: (\d+) of \1 requests failed \(100 %\); of the stable revision 0 of /,
    );
  });

  test('one that fails for one kind of path is undone, and the reason names it', async () => {
    const shop = await open({ canary: { bake_s: 600 } });
    await shop.released(image(1));
    await shop.set({ variables: { STANDIN_ERROR_PATH: '/cart' } });
    const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
    await shop.reaches(id, 'canary');
    const isOver = async () => (await shop.deployment(id)).state !== 'canary';
    for (let n = 0; n < 5000 && (n % 250 > 0 || !(await isOver())); n += 25) {
      const pages = Array.from({ length: 24 }, (_, page) => shop.visit(undefined, `/page/${page % 7}`));
      await Promise.all([shop.visit(undefined, `/cart/${n}`), ...pages]);
    }
    const failed = await shop.reaches(id, 'failed');
    assert.match(
      failed.failure!.message,
      /^The canary is worse: (\d+) of \d+ requests failed \(.* %\), \1 of them for \/cart\/\*; /,
    );
  });

  test('where one instance of several has the errors it is replaced, once, and the canary is promoted', async () => {
    const shop = await open({ replicas: 4, canary: { bake_s: 5 } });
    await shop.released(image(1));
    await shop.set({ variables: { STANDIN_FAIL_ON: '/fail' } });
    const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
    await shop.reaches(id, 'canary');
    const ofCanary = async () => {
      const rows = await instancesOf(t.app.store.db, shop);
      return rows.filter(({ revision, state }) => revision === 2 && state === 'healthy').map((row) => row.id);
    };
    const before = await ofCanary();
    assert.equal(before.length, 2);
    const cookie = await until('a visitor of the canary', async () => {
      const visit = await shop.visit();
      return visit.revision === 'r2' && visit.cookie;
    });
    const bad = JSON.parse((await shop.visit(cookie, '/fail')).body).instance;
    const load = shop.load(2);
    const done = await shop.reaches(id, 'succeeded');
    await load.stop();
    const replaced = done.timeline.filter(({ message }) => message.endsWith('Replacing it.'));
    assert.equal(replaced.length, 1, JSON.stringify(done.timeline));
    assert.match(
      replaced[0]!.message,
      /^One instance of the canary has most of its errors: \d+ of \d+ requests failed \(.*\), at its other instances 0 of \d+ requests failed/,
    );
    const after = await ofCanary();
    assert.deepEqual(
      before.map((instance) => after.includes(instance)),
      before.map((instance) => instance !== bad),
    );
  });

  test('one whose requests get no answer is undone, though none has failed', async () => {
    const shop = await open({ canary: { bake_s: 600 } });
    await shop.released(image(1));
    await shop.set({ variables: { STANDIN_HANG_RATE: '0.5' } });
    const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
    await shop.reaches(id, 'canary');
    const visits = Array.from({ length: 60 }, () => shop.visit().catch(() => {}));
    const failed = await shop.reaches(id, 'failed');
    assert.match(
      failed.failure!.message,
      /requests failed .* of them still without an answer; of the stable revision 0 of /,
    );
    await Promise.all(visits);
  });

  test('too few requests are said, and on_inconclusive decides; what failed where stable did not is held', async () => {
    const shop = await open({ canary: { bake_s: 1, on_inconclusive: 'hold' } });
    await shop.released(image(1));
    const { id } = await shop.deploy(image(2), { strategy: 'canary' });
    const held = await shop.reachesPhase(id, 'paused');
    assert.deepEqual(held.canary!.analysis.verdict, 'inconclusive');
    assert.equal(
      held.timeline.at(-1)!.message,
      'Too few requests to tell: there was no request; of the stable revision there was no request. Paused.',
    );
    await shop.set({ canary: { on_inconclusive: 'promote' } });
    await shop.api('POST', `/deployments/${id}/resume`);
    const done = await shop.reaches(id, 'succeeded');
    assert.match(done.timeline.at(-2)!.message, /^Too few requests to tell: .* Moving all traffic\.$/);
    await shop.set({ variables: { STANDIN_ERROR_RATE: '1' }, canary: { bake_s: 2 } });
    const failing = await shop.deploy(image(3), { strategy: 'canary', canary_percent: 50 });
    await shop.reaches(failing.id, 'canary');
    for (let n = 0; n < 4; n++) await shop.visit();
    const paused = await shop.reachesPhase(failing.id, 'paused');
    assert.match(paused.timeline.at(-1)!.message, / Paused, because only the canary had errors\.$/);
    await shop.api('POST', `/deployments/${failing.id}/abort`);
    await shop.reaches(failing.id, 'canceled');
  });

  test('auto_rollback false: a canary that fails its analysis is paused instead', async () => {
    const shop = await open({ auto_rollback: false, canary: { bake_s: 30 } });
    await shop.released(image(1));
    await shop.set({ variables: { STANDIN_ERROR_RATE: '1' } });
    const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
    await shop.reaches(id, 'canary');
    const load = shop.load(2);
    await shop.reachesPhase(id, 'paused');
    await load.stop();
    await shop.api('POST', `/deployments/${id}/abort`);
    await shop.reaches(id, 'canceled');
  });

  test('an abort whose previous revision has died leaves the new one serving, and says so', async () => {
    const shop = await open({ variables: { STANDIN_EXIT_ON: '/exit' }, canary: { advance: 'manual', bake_s: 600 } });
    await shop.released(image(1));
    await shop.set({ variables: { STANDIN_EXIT_ON: null } });
    const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
    await shop.reaches(id, 'canary');
    const stable = await until('a visitor of the previous revision', async () => {
      const { revision, cookie } = await shop.visit();
      return revision === 'r1' && cookie;
    });
    // Each time it dies it is left alone for twice as long; after the fifth for eight seconds.
    for (let round = 0; round < 5; round++) {
      await until('it to run', async () => (await shop.visit(stable)).revision === 'r1');
      await shop.visit(stable, '/exit').catch(() => {});
      await until('the other to stand in', async () => (await shop.visit(stable)).revision === 'r2');
    }
    assert.equal((await shop.api('POST', `/deployments/${id}/abort`)).status, 200);
    await t.app.store.db.updateTable('deployment').set({ deadline_at: Date.now() }).where('id', '=', id).execute();
    const ended = await shop.reaches(id, 'canceled');
    assert.match(
      ended.timeline.at(-1)!.message,
      /^The previous revision has no healthy instance: this one goes on serving/,
    );
    const { active_revision, traffic } = await shop.environment();
    assert.deepEqual([active_revision, traffic], ['r2', [{ revision: 'r2', percent: 100 }]]);
    assert.equal((await shop.visit(stable)).revision, 'r2');
  });

  test('pause, resume, promote and abort by hand; 409 in states that do not allow them', async () => {
    const shop = await open({ canary: { advance: 'manual', bake_s: 1, min_requests: 0 } });
    await shop.released(image(1));
    const { id } = await shop.deploy(image(2), { strategy: 'canary' });
    const command = async (verb: string) => {
      const { status, body } = await shop.api('POST', `/deployments/${id}/${verb}`);
      return status === 200 ? (body.canary?.phase ?? body.state) : body.error.code;
    };
    await shop.reaches(id, 'canary');
    assert.equal(await command('resume'), 'deployment_state_conflict');
    assert.equal(await command('pause'), 'paused');
    assert.equal(await command('pause'), 'deployment_state_conflict');
    assert.equal(await command('resume'), 'baking');
    await shop.reachesPhase(id, 'awaiting_approval');
    assert.equal(await command('promote'), 'promoting');
    await shop.reaches(id, 'succeeded');
    for (const verb of ['promote', 'pause', 'resume', 'abort'])
      assert.equal(await command(verb), 'deployment_state_conflict');
  });
});
