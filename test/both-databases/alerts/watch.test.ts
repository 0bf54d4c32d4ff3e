// What the watcher makes of what was measured, with a clock that the test moves: a minute takes no time.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { deleteDomainRules, insertDomainRule } from '../../../src/alerts/defaults.ts';
import { deleteAlertsBefore } from '../../../src/alerts/queries.ts';
import { MovedTime, Site } from '../../helpers/measured-site.ts';

const time = new MovedTime();
before(() => time.start());
after(() => time.app.stop());

describe('the default rule about errors', () => {
  test('a revision that begins to fail: fired within window + 15 s, resolved after it recovers, one event each', async () => {
    const site = await Site.open(time);
    await site.instance('healthy');
    await time.pass(120, () => site.serve());
    assert.deepEqual(await site.kinds(), []);
    let n = 0;
    const firing = async () => (await site.alerts()).length === 1;
    const fired = await time.pass(90, () => site.serve({ errors: n++ % 5 < 3 ? 1 : 0 }), firing); // 6 %
    assert.ok(fired !== null && fired <= 75_000, `${fired} ms`);
    const [alert] = await site.alerts();
    assert.deepEqual(
      [alert!.name, alert!.revision, alert!.state, alert!.severity],
      ['Errors', 'r1', 'firing', 'critical'],
    );
    assert.ok(alert!.value > 0.05 && alert!.value < 0.06, `${alert!.value}`);
    assert.match(alert!.message, /^The error rate of r1 is 5\.\d+ % over 60 s, above 5 %\.$/);
    await time.pass(60, () => site.serve({ errors: n++ % 5 < 3 ? 1 : 0 }));
    assert.deepEqual(await site.kinds(), ['alert.fired']);
    const resolved = await time.pass(
      90,
      () => site.serve(),
      async () => (await site.alerts())[0]!.state === 'resolved',
    );
    assert.ok(resolved !== null && resolved <= 75_000, `${resolved} ms`);
    await time.pass(60, () => site.serve());
    const [after] = await site.alerts();
    assert.deepEqual(await site.told(), [
      ['alert.fired', alert],
      ['alert.resolved', after],
    ]);
    assert.equal(time.signalled.filter((id) => id === site.id).length, 2, 'of three that looked, one did each');
  });

  test('at 100 % it takes 10 s, with minutes of good answers before', async () => {
    const site = await Site.open(time);
    await site.instance('healthy');
    await time.pass(180, () => site.serve());
    const fired = await time.pass(
      30,
      () => site.serve({ errors: 10 }),
      async () => (await site.alerts()).length === 1,
    );
    assert.ok(fired !== null && fired <= 10_000, `${fired} ms`);
  });

  test('each revision is judged apart, and one that gets no more requests is no longer bad', async () => {
    const site = await Site.open(time);
    await site.instance('healthy');
    await time.pass(30, async () => {
      await site.serve({ revision: 1, requests: 100 });
      await site.serve({ revision: 2, requests: 1, errors: 1 });
    });
    assert.deepEqual(
      (await site.alerts()).map(({ revision, value }) => [revision, value]),
      [['r2', 1]],
    );
    await time.pass(80, () => site.serve({ revision: 1 }));
    assert.deepEqual(await site.kinds(), ['alert.fired', 'alert.resolved']);
  });
});

describe('for_s', () => {
  const rule = { metric: 'healthy_instances', comparator: 'lt', threshold: 1, for_s: 30 };

  test('what comes and goes within it never fires; what stays does, and ends as slowly', async () => {
    const site = await Site.open(time, rule);
    for (let i = 0; i < 5; i++) {
      await site.instance('unhealthy');
      await time.pass(25);
      await site.instance('healthy');
      await time.pass(10);
    }
    assert.deepEqual(await site.kinds(), []);
    await site.instance('unhealthy');
    const fired = await time.pass(60, undefined, async () => (await site.alerts()).length === 1);
    assert.ok(fired !== null && fired >= 30_000 && fired <= 40_000, `${fired} ms`);
    for (let i = 0; i < 5; i++) {
      await site.instance('healthy');
      await time.pass(25);
      await site.instance('unhealthy');
      await time.pass(10);
    }
    assert.deepEqual(await site.kinds(), ['alert.fired'], 'one incident, however it flaps');
    await site.instance('healthy');
    const resolved = await time.pass(60, undefined, async () => (await site.alerts())[0]!.state === 'resolved');
    assert.ok(resolved !== null && resolved >= 30_000 && resolved <= 40_000, `${resolved} ms`);
    assert.deepEqual(
      await time.app.app.store.db.selectFrom('alert_watch').selectAll().execute(),
      [],
      'nothing is left behind',
    );
  });

  test('a process that begins anew goes on where the last one was', async () => {
    const site = await Site.open(time, rule);
    await site.instance('unhealthy');
    await time.pass(20);
    time.watchers = [time.newWatcher()];
    const fired = await time.pass(60, undefined, async () => (await site.alerts()).length === 1);
    assert.ok(fired !== null && fired <= 20_000, `${fired} ms`);
  });
});

test('a service that was away for long does not take that for recovery, nor for news', async () => {
  const site = await Site.open(time);
  await site.instance('healthy');
  const bad = () => site.serve({ errors: 5 });
  await time.pass(30, bad);
  time.nowMs += 10 * 60_000;
  time.watchers = [time.newWatcher()];
  await time.pass(20);
  await time.pass(60, bad);
  assert.deepEqual(await site.kinds(), ['alert.fired']);
  time.nowMs += 10 * 60_000;
  time.watchers = [time.newWatcher(), time.newWatcher()];
  const resolved = await time.pass(90, undefined, async () => (await site.alerts())[0]!.state === 'resolved');
  assert.ok(resolved !== null && resolved <= 75_000, `${resolved} ms`);
});

describe('every metric', () => {
  test('latency, per revision', async () => {
    const site = await Site.open(time, { metric: 'p95_ms', comparator: 'gt', threshold: 100, window_s: 30 });
    await time.pass(30, () => site.serve({ latencyIndex: 3 }));
    assert.deepEqual(await site.kinds(), []);
    await time.pass(15, () => site.serve({ latencyIndex: 15 }));
    const [alert] = await site.alerts();
    assert.ok(alert!.value > 300 && alert!.value <= 500, `${alert!.value}`);
    assert.match(alert!.message, /^The p95 latency of r1 is [\d.]+ ms over 30 s, above 100 ms\.$/);
    assert.equal(alert!.revision, 'r1');
  });

  test('requests a second, of the environment, while something is active', async () => {
    const rule = { metric: 'request_rate', comparator: 'lt', threshold: 5, window_s: 30 };
    const site = await Site.open(time, rule);
    await time.pass(60, () => site.serve({ requests: 10 }));
    const early = (await site.kinds()).length; // until the window was full
    assert.equal(early % 2, 0);
    await time.pass(30, () => site.serve({ requests: 1 }));
    const alert = (await site.alerts()).at(-1)!;
    assert.deepEqual([alert.state, alert.revision], ['firing', null]);
    assert.ok(alert.value < 5);
    await time.app.app.store.db
      .updateTable('revision')
      .set({ state: 'retired' })
      .where('project_id', '=', site.id)
      .execute();
    await time.pass(5);
    assert.equal((await site.alerts()).at(-1)!.state, 'resolved');
  });

  test('days of a certificate, of each domain or of the one it names', async () => {
    const rule = { metric: 'certificate_days_left', comparator: 'lt', threshold: 10 };
    const site = await Site.open(time, { ...rule, name: 'all' }, { ...rule, name: 'one', hostname: 'b.example' });
    const { db } = time.app.app.store;
    const day = 86_400_000;
    for (const [hostname, days] of [
      ['a.example', 9],
      ['b.example', 8],
      ['c.example', 11],
    ] as const) {
      const id = time.ids('dom');
      const certificate = time.ids('crt');
      const { account_id } = await db
        .selectFrom('project')
        .select('account_id')
        .where('id', '=', site.id)
        .executeTakeFirstOrThrow();
      await db
        .insertInto('domain')
        .values({
          ...{ id, account_id, project_id: site.id, environment: 'production', hostname, state: 'active' },
          ...{ certificate_id: certificate, last_error: null, failures: 0, next_attempt_at: null, wait_until: null },
          ...{ renew_asked: 0, lease_owner: null, lease_until: 0, order_directory: null, order_url: null },
          ...{ order_key_sealed: null, created_at: time.nowMs, updated_at: time.nowMs, version: 1 },
        })
        .execute();
      await db
        .insertInto('certificate')
        .values({
          ...{ id: certificate, domain_id: id, issuer: 'x', serial: '1', not_before: time.nowMs },
          ...{
            not_after: time.nowMs + days * day,
            renew_at: time.nowMs,
            fingerprint_sha256: '',
            chain_pem: '',
            key_sealed: '',
          },
          ...{ ari_id: null, ari_ask_at: null, created_at: time.nowMs },
        })
        .execute();
    }
    await time.look();
    const shown = (await site.alerts()).map(({ name, hostname, revision, value }) => [
      name,
      hostname,
      revision,
      Math.round(value),
    ]);
    assert.deepEqual(shown.sort(), [
      ['all', 'a.example', null, 9],
      ['all', 'b.example', null, 8],
      ['one', 'b.example', null, 8],
    ]);
    const place = { projectId: site.id, environment: 'production', hostname: 'b.example' };
    await db.transaction().execute((tx) => deleteDomainRules(tx, place));
    await time.look();
    const ended = (await site.alerts()).filter(({ state }) => state === 'resolved').map(({ name }) => name);
    assert.deepEqual(ended, ['one'], 'a rule that went with its domain resolves what it had firing');
    await db.transaction().execute((tx) => insertDomainRule(tx, time, place));
    await db
      .updateTable('certificate')
      .set({ not_after: time.nowMs + 90 * day })
      .where('not_after', '<', time.nowMs + 10 * day)
      .execute();
    await time.look();
    assert.deepEqual(new Set((await site.alerts()).map(({ state }) => state)), new Set(['resolved']));
  });

  test('external: only who fired it resolves it', async () => {
    const site = await Site.open(time, { metric: 'external' });
    const alerts = [{ status: 'firing', labels: { alertname: 'R' }, annotations: {}, fingerprint: 'f' }];
    const times = { startsAt: '2026-11-15T08:00:00Z', endsAt: '0001-01-01T00:00:00Z' };
    await site.api('POST', '/alerts/alertmanager', {
      version: '4',
      status: 'firing',
      alerts: alerts.map((alert) => ({ ...alert, ...times })),
    });
    await time.pass(60);
    assert.deepEqual(await site.kinds(), ['alert.fired']);
  });
});

describe('rules that change while they have something firing', () => {
  const rule = { metric: 'healthy_instances', comparator: 'lt', threshold: 1 };

  test('switched off or deleted: resolved with it, and not fired again', async () => {
    for (const [method, body] of [
      ['PATCH', { enabled: false }],
      ['DELETE', undefined],
    ] as const) {
      const site = await Site.open(time, rule);
      await site.instance('unhealthy');
      await time.look();
      const [alert] = await site.alerts();
      const answer = await time.app.call(method, `/v1/projects/${site.id}/alert-rules/${alert!.rule_id}`, { body });
      assert.ok(answer.status < 300);
      assert.deepEqual(await site.kinds(), ['alert.fired', 'alert.resolved']);
      await time.pass(20);
      assert.deepEqual(await site.kinds(), ['alert.fired', 'alert.resolved']);
    }
  });

  test('another threshold counts from the next look on; the alert keeps the name it had', async () => {
    const site = await Site.open(time, rule);
    await site.instance('unhealthy');
    await time.look();
    const [alert] = await site.alerts();
    await site.api('PATCH', `/alert-rules/${alert!.rule_id}`, { comparator: 'gt', name: 'Other' });
    await time.look();
    assert.deepEqual(
      (await site.alerts()).map(({ name, state }) => [name, state]),
      [['R', 'resolved']],
    );
  });

  test('old ones are cleared away once they are resolved, and not before', async () => {
    const site = await Site.open(time, rule);
    await site.instance('unhealthy');
    await time.look();
    const { db } = time.app.app.store;
    await deleteAlertsBefore(db, time.nowMs + 1000);
    const [alert] = await site.alerts();
    assert.equal(alert!.state, 'firing');
    await site.api('PATCH', `/alert-rules/${alert!.rule_id}`, { enabled: false });
    await deleteAlertsBefore(db, Date.parse(alert!.fired_at) - 1000);
    assert.equal((await site.alerts()).length, 1);
    await deleteAlertsBefore(db, time.nowMs + 1000);
    assert.deepEqual(await site.alerts(), []);
  });

  test('the end of the environment or the project is the end of its alerts, and is told', async () => {
    for (const path of ['/environments/production', '']) {
      const site = await Site.open(time, rule);
      await site.instance('unhealthy');
      await time.look();
      const { status } = await time.app.call('DELETE', `/v1/projects/${site.id}${path}`);
      assert.equal(status, 204);
      await time.look();
      assert.deepEqual(await site.kinds(), ['alert.fired', 'alert.resolved']);
    }
  });
});
