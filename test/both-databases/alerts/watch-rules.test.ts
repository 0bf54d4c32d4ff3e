// Rules that change, and environments that are deleted, while an alert is firing.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { deleteAlertsBefore } from '../../../src/alerts/alert-queries.ts';
import { movedTime, Site } from '../../helpers/measured-site.ts';

const time = movedTime();

describe('rules that change while they have something firing', () => {
  const rule = { metric: 'healthy_instances', comparator: 'lt', threshold: 1 };

  test('disabled or deleted: the alert resolves at once and does not fire again', async () => {
    for (const [method, body] of [
      ['PATCH', { enabled: false }],
      ['DELETE', undefined],
    ] as const) {
      const site = await Site.open(time, rule);
      await site.instance('unhealthy');
      await time.evaluateAlerts();
      const [alert] = await site.alerts();
      const answer = await time.app.call(method, `/v1/projects/${site.id}/alert-rules/${alert!.rule_id}`, { body });
      assert.ok(answer.status < 300);
      assert.deepEqual(await site.kinds(), ['alert.fired', 'alert.resolved']);
      await time.pass(20);
      assert.deepEqual(await site.kinds(), ['alert.fired', 'alert.resolved']);
    }
  });

  test('a new threshold applies from the next look; the alert keeps the name it had', async () => {
    const site = await Site.open(time, rule);
    await site.instance('unhealthy');
    await time.evaluateAlerts();
    const [alert] = await site.alerts();
    await site.api('PATCH', `/alert-rules/${alert!.rule_id}`, { comparator: 'gt', name: 'Other' });
    await time.evaluateAlerts();
    assert.deepEqual(
      (await site.alerts()).map(({ name, state }) => [name, state]),
      [['R', 'resolved']],
    );
  });

  test('old alerts are deleted once they are resolved, not before', async () => {
    const site = await Site.open(time, rule);
    await site.instance('unhealthy');
    await time.evaluateAlerts();
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

  test('deleting the environment or the project resolves its alerts, with an event', async () => {
    for (const path of ['/environments/production', '']) {
      const site = await Site.open(time, rule);
      await site.instance('unhealthy');
      await time.evaluateAlerts();
      const { status } = await time.app.call('DELETE', `/v1/projects/${site.id}${path}`);
      assert.equal(status, 204);
      await time.evaluateAlerts();
      assert.deepEqual(await site.kinds(), ['alert.fired', 'alert.resolved']);
    }
  });
});
