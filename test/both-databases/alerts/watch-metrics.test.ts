// What the watcher makes of each metric.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { deleteDomainRules, insertDomainRule } from '../../../src/alerts/default-rules.ts';
import { dayMs, movedTime, Site } from '../../helpers/measured-site.ts';

const time = movedTime();

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

  test('requests a second, of an environment with an active revision', async () => {
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

  test('days left of a certificate, of every domain or of the one the rule names', async () => {
    const rule = { metric: 'certificate_days_left', comparator: 'lt', threshold: 10 };
    const site = await Site.open(time, { ...rule, name: 'all' }, { ...rule, name: 'one', hostname: 'b.example' });
    const { db } = time.app.app.store;
    await site.domain('a.example', 9);
    await site.domain('b.example', 8);
    await site.domain('c.example', 11);
    await time.evaluateAlerts();
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
    await time.evaluateAlerts();
    const ended = (await site.alerts()).filter(({ state }) => state === 'resolved').map(({ name }) => name);
    assert.deepEqual(ended, ['one'], 'a rule that went with its domain resolves what it had firing');
    await db.transaction().execute((tx) => insertDomainRule(tx, time, place));
    await db
      .updateTable('certificate')
      .set({ not_after: time.nowMs + 90 * dayMs })
      .where('not_after', '<', time.nowMs + 10 * dayMs)
      .execute();
    await time.evaluateAlerts();
    assert.deepEqual(new Set((await site.alerts()).map(({ state }) => state)), new Set(['resolved']));
  });

  test('external: the watcher does not resolve alerts of Alertmanager', async () => {
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
