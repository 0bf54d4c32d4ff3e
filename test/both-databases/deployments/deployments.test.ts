import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';

const t = sharedApp({ tokenLimit: 1_000_000 }); // these tests poll more than a client should

const open = (settings?: object) => Shop.open(t.url, settings);
const image = (tag: number | string) => `registry.example/shop:${tag}`;
/** Without those of alerts: a revision that fails may set one off, sooner or later. */
const events = async (shop: Shop) => {
  const rows = await t.app.store.db
    .selectFrom('event')
    .select(['type', 'sequence', 'body'])
    .where('project_id', '=', shop.project)
    .orderBy('sequence')
    .execute();
  assert.deepEqual(
    rows.map((row) => row.sequence),
    rows.map((_, index) => index + 1),
    'sequence has no gap',
  );
  return rows
    .filter((row) => !row.type.startsWith('alert.'))
    .map((row) => ({ type: row.type, data: JSON.parse(row.body).data }));
};

describe('creating', () => {
  test('201 with the record, its Location and deployment.created', async () => {
    const shop = await open();
    const { status, body, headers } = await shop.api('POST', '/deployments', {
      environment: 'production',
      image: image(1),
      note: 'first',
    });
    assert.equal(status, 201);
    assert.equal(headers.get('location'), `${t.url}/v1/projects/${shop.project}/deployments/${body.id}`);
    const { id, created_at, created_by, timeline, ...rest } = body;
    assert.match(id, /^dpl_/);
    assert.match(created_by, /^tok_/);
    assert.deepEqual(timeline, [{ at: created_at, state: 'queued', message: 'Accepted.' }]);
    assert.deepEqual(rest, {
      project_id: shop.project,
      environment: 'production',
      kind: 'deploy',
      revision: 'r1',
      previous_revision: null,
      image: image(1),
      digest: null,
      strategy: 'rolling',
      canary_percent: null,
      state: 'queued',
      canary: null,
      failure: null,
      note: 'first',
      started_at: null,
      finished_at: null,
    });
    const [first] = await events(shop);
    assert.deepEqual(first, { type: 'deployment.created', data: body });
    await shop.reaches(id, 'succeeded');
  });

  test('refusals: 400, 404, 409, 422, and none of them uses up a revision number', async () => {
    const shop = await open();
    const post = async (body: object) => {
      const result = await shop.api('POST', '/deployments', { environment: 'production', image: image(1), ...body });
      return [result.status, result.body.error?.code];
    };
    assert.deepEqual(await post({ image: 'Not An Image' }), [400, 'invalid_request']);
    assert.deepEqual(await post({ canary_percent: 10 }), [400, 'invalid_request']);
    assert.deepEqual(await post({ strategy: 'canary', canary_percent: 100 }), [400, 'invalid_request']);
    assert.deepEqual(await post({ strategy: 'big_bang' }), [400, 'invalid_request']);
    assert.deepEqual(await post({ environment: 'nowhere' }), [422, 'environment_unknown']);
    await shop.set({ locked: { reason: 'freeze' } });
    assert.deepEqual(await post({}), [422, 'environment_locked']);
    await shop.set({ locked: null });
    assert.equal((await shop.deploy(image(1))).revision, 'r1');
  });

  test('50 simultaneous POSTs to one environment: exactly one 201, the rest 409 naming the winner', async () => {
    const shop = await open({ variables: { STANDIN_UNHEALTHY: '1' } }); // it does not end before the last has asked
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        shop.api('POST', '/deployments', { environment: 'production', image: image(i) }),
      ),
    );
    const won = results.filter((result) => result.status === 201);
    assert.equal(won.length, 1);
    for (const { status, body } of results) {
      if (status === 201) continue;
      assert.equal(status, 409);
      assert.equal(body.error.code, 'deployment_in_progress');
      assert.deepEqual(body.error.details, [{ path: 'deployment', message: won[0]!.body.id }]);
    }
    await shop.api('POST', `/deployments/${won[0]!.body.id}/abort`);
    await shop.reaches(won[0]!.body.id, 'canceled');
    assert.equal((await shop.deploy(image('next'))).revision, 'r2');
  });

  test('409 on deleting a project or environment that is being deployed to; afterwards nothing of it answers', async () => {
    const shop = await open({ variables: { STANDIN_UNHEALTHY: '1' } });
    const { id } = await shop.deploy(image(1));
    for (const path of ['', '/environments/production']) {
      const { status, body } = await shop.api('DELETE', path);
      assert.equal(status, 409);
      assert.deepEqual([body.error.code, body.error.details[0].message], ['deployment_in_progress', id]);
    }
    await shop.api('POST', `/deployments/${id}/abort`);
    await shop.reaches(id, 'canceled');
    await shop.set({ variables: { STANDIN_UNHEALTHY: null } });
    await shop.released(image(2));
    assert.equal((await shop.visit()).status, 200);
    assert.equal((await shop.api('DELETE', '')).status, 204);
    await until('the route to be gone', async () => ((await shop.visit()).status === 404 ? true : undefined));
    const engine = (await t.call('GET', '/v1/regions')).body.data[0];
    assert.equal(engine.available, true);
  });
});

describe('rolling out', () => {
  test('the first deployment serves, and tells of its end', async () => {
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
      (await events(shop)).map(({ type }) => type),
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
    const { visits, failed } = await load.stop();
    assert.deepEqual(failed, []);
    assert.ok(visits > 200, `${visits} visits`);
    assert.equal((await shop.visit()).image, image(3));
    const kinds = (await events(shop)).filter(({ type }) => type === 'revision.rolled_back');
    assert.deepEqual(
      kinds.map(({ data }) => [data.id, data.cause, data.state]),
      [
        ['r5', 'abort', 'rolled_back'],
        ['r4', 'manual', 'rolled_back'],
      ],
    );
  });

  test('10,000 requests at 10 %: the canary’s share is within 1 percentage point; a visitor never flips back', async () => {
    const shop = await open({ canary: { advance: 'manual', steps: [40] } });
    await shop.released(image(1));
    const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 10 });
    await shop.reaches(id, 'canary');
    await until('both to serve', async () => ((await shop.visit()).cookie ? true : undefined));
    const counts: Record<string, number> = {};
    const sides = new Map<string, string>();
    const visitors = Array.from({ length: 8 }, async () => {
      for (let i = 0; i < 1250; i++) {
        const { revision, cookie } = await shop.visit();
        counts[revision!] = (counts[revision!] ?? 0) + 1;
        if (sides.size < 200) sides.set(cookie!, revision!);
      }
    });
    await Promise.all(visitors);
    const share = (100 * counts.r2!) / 10_000;
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

  test('a canary goes through its steps, and at the end gets everything', async () => {
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
    assert.match(failed.failure!.message, /error rate 100 % is above 5 %/);
    assert.deepEqual((await shop.environment()).traffic, [{ revision: 'r1', percent: 100 }]);
    for (let i = 0; i < 20; i++) assert.equal((await shop.visit()).revision, 'r1');
    assert.deepEqual((await shop.revision('r2')).state, 'rolled_back');
    const told = (await events(shop)).slice(-2);
    assert.deepEqual(
      told.map(({ type }) => type),
      ['revision.rolled_back', 'deployment.failed'],
    );
    assert.equal(told[0]!.data.cause, 'analysis');
  });

  test('auto_rollback false: a canary that fails its analysis is paused instead', async () => {
    const shop = await open({ auto_rollback: false, canary: { bake_s: 30, min_requests: 5 } });
    await shop.released(image(1));
    await shop.set({ variables: { STANDIN_ERROR_RATE: '1' } });
    const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
    await shop.reaches(id, 'canary');
    const load = shop.load(2);
    await until('a pause', async () => ((await shop.deployment(id)).canary?.phase === 'paused' ? true : undefined));
    await load.stop();
    await shop.api('POST', `/deployments/${id}/abort`);
    await shop.reaches(id, 'canceled');
  });

  test('pause, resume, promote and abort by hand, and 409 where they make no sense', async () => {
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
    await until('approval', async () =>
      (await shop.deployment(id)).canary?.phase === 'awaiting_approval' ? true : undefined,
    );
    assert.equal(await command('promote'), 'promoting');
    await shop.reaches(id, 'succeeded');
    for (const verb of ['promote', 'pause', 'resume', 'abort'])
      assert.equal(await command(verb), 'deployment_state_conflict');
  });
});

describe('failing', () => {
  for (const [what, variables, code] of [
    ['an image that is not there', { STANDIN_IMAGE_MISSING: '1' }, 'image_not_found'],
    ['an instance that does not listen', { STANDIN_UNHEALTHY: '1' }, 'start_timeout'],
    ['an instance that ends again and again', { STANDIN_EXIT_AFTER_S: '0.05' }, 'crashed'],
  ] as const) {
    test(`${what}: ${code}, and the previous revision goes on serving`, async () => {
      const shop = await open({ health_check: { start_timeout_s: code === 'crashed' ? 20 : 2, healthy_after: 5 } });
      await shop.released(image(1));
      await shop.set({ variables });
      const load = shop.load(2);
      const { id } = await shop.deploy(image(2));
      const failed = await shop.reaches(id, 'failed');
      assert.equal(failed.failure!.code, code);
      assert.deepEqual((await load.stop()).failed, []);
      assert.equal((await shop.visit()).revision, 'r1');
      assert.equal((await shop.revision('r2')).state, 'failed');
      if (code === 'crashed') assert.match(failed.failure!.log_tail.join('\n'), /exit code 1/);
      await until('no instance of it', async () => {
        const rows = await t.app.store.db
          .selectFrom('instance')
          .select('revision')
          .where('project_id', '=', shop.project)
          .execute();
        return rows.every((row) => row.revision === 1) ? true : undefined;
      });
    });
  }

  test('a health check that answers badly: health_check_failed', async () => {
    const shop = await open({
      health_check: { path: '/', start_timeout_s: 2 },
      variables: { STANDIN_ERROR_RATE: '1' },
    });
    const { id } = await shop.deploy(image(1));
    const failed = await shop.reaches(id, 'failed');
    assert.equal(failed.failure!.code, 'health_check_failed');
    assert.match(failed.failure!.message, /answered 500/);
    assert.equal((await shop.visit()).status, 404, 'nothing was ever live');
  });

  test('abort in every early state ends as canceled', async () => {
    const shop = await open({ variables: { STANDIN_UNHEALTHY: '1' } });
    const { id } = await shop.deploy(image(1));
    await shop.reaches(id, 'starting');
    const { body } = await shop.api('POST', `/deployments/${id}/abort`);
    assert.equal(body.state, 'aborting');
    const ended = await shop.reaches(id, 'canceled');
    assert.deepEqual([ended.failure!.code, ended.failure!.message], ['aborted', 'Aborted by admin.']);
    assert.deepEqual(
      (await events(shop)).map(({ type }) => type),
      ['deployment.created', 'deployment.failed'],
    );
  });
});

describe('keeping', () => {
  test('an instance that dies is replaced', async () => {
    const shop = await open({ replicas: 2, health_check: { interval_s: 1, unhealthy_after: 1 } });
    await shop.set({ variables: { STANDIN_EXIT_AFTER_S: '2' } });
    await shop.released(image(1));
    const ids = async () =>
      (
        await t.app.store.db
          .selectFrom('instance')
          .select(['id', 'state'])
          .where('project_id', '=', shop.project)
          .execute()
      )
        .filter((row) => row.state === 'healthy')
        .map((row) => row.id);
    const first = await ids();
    assert.equal(first.length, 2);
    await until(
      'two others',
      async () => {
        const now = await ids();
        return now.length === 2 && now.every((id) => !first.includes(id)) ? true : undefined;
      },
      30_000,
    );
  });

  test('a changed number of replicas is followed', async () => {
    const shop = await open();
    await shop.released(image(1));
    for (const replicas of [4, 1]) {
      await shop.set({ replicas });
      await until(`${replicas} instances`, async () => {
        const rows = await t.app.store.db
          .selectFrom('instance')
          .select('state')
          .where('project_id', '=', shop.project)
          .execute();
        return rows.length === replicas && rows.every((row) => row.state === 'healthy') ? true : undefined;
      });
    }
  });

  test('logs of a deployment’s instances', async () => {
    const shop = await open();
    const { id } = await shop.released(image(1));
    const { status, body } = await shop.api('GET', `/deployments/${id}/logs`);
    assert.equal(status, 200);
    assert.match(body.data[0].text, /started/);
    assert.match(body.data[0].instance, /^ins_/);
  });
});

describe('revisions', () => {
  test('listed newest first; a rollback restores image and variables as a new revision', async () => {
    const shop = await open({ variables: { A: 'one' } });
    await shop.released(image(1));
    await shop.set({ variables: { A: 'two' } });
    await shop.released(image(2));
    const { body } = await shop.api('GET', '/environments/production/revisions');
    assert.deepEqual(
      body.data.map(({ id, state, rollback_eligible }: { id: string; state: string; rollback_eligible: boolean }) => [
        id,
        state,
        rollback_eligible,
      ]),
      [
        ['r2', 'active', false],
        ['r1', 'superseded', true],
      ],
    );
    const rollback = await shop.api('POST', '/environments/production/rollback');
    assert.equal(rollback.status, 201);
    assert.deepEqual(
      [rollback.body.kind, rollback.body.revision, rollback.body.previous_revision],
      ['rollback', 'r3', 'r2'],
    );
    await shop.reaches(rollback.body.id, 'succeeded');
    assert.equal((await shop.visit()).image, image(1));
    const restored = await shop.revision('r3');
    assert.equal(restored.restored_from, 'r1');
    assert.equal(restored.digest, (await shop.revision('r1')).digest);
    assert.equal((await shop.revision('r2')).state, 'rolled_back');
  });

  test('404 revision_not_found, 422 revision_not_eligible', async () => {
    const shop = await open();
    const rollback = async (body?: object) => {
      const result = await shop.api('POST', '/environments/production/rollback', body);
      return [result.status, result.body.error?.code];
    };
    assert.deepEqual(await rollback(), [422, 'revision_not_eligible']);
    assert.deepEqual(await rollback({ revision: 'r9' }), [404, 'revision_not_found']);
    await shop.released(image(1));
    assert.deepEqual(await rollback({ revision: 'r1' }), [422, 'revision_not_eligible']);
    await shop.set({ variables: { STANDIN_IMAGE_MISSING: '1' } });
    await shop.reaches((await shop.deploy(image(2))).id, 'failed');
    assert.deepEqual(await rollback({ revision: 'r2' }), [422, 'revision_not_eligible']);
    assert.equal(
      (await shop.api('GET', '/environments/production/revisions/r7')).body.error.code,
      'revision_not_found',
    );
    assert.equal((await shop.api('GET', '/environments/production/revisions/x')).body.error.code, 'revision_not_found');
  });

  test('only the latest stay eligible', async () => {
    const shop = await open({ retention: 1 });
    for (const tag of [1, 2, 3]) await shop.released(image(tag));
    assert.deepEqual([(await shop.revision('r1')).state, (await shop.revision('r2')).state], ['retired', 'superseded']);
  });
});
