// A real Alertmanager tells the service what fires, again and again, and what has ended.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Alert } from '../../../src/contract/alerts.ts';
import { alertmanagerMissing, startAlertmanager, type TestAlertmanager } from '../../helpers/alertmanager.ts';
import { startApp, type TestApp } from '../../helpers/app.ts';
import { Receiver } from '../../helpers/receiver.ts';
import { until } from '../../helpers/wait.ts';

describe('Alertmanager', { skip: alertmanagerMissing }, () => {
  let t: TestApp;
  let alertmanager: TestAlertmanager;
  let project: string;
  before(async () => {
    t = await startApp({ tokenLimit: 1_000_000 });
    project = (await t.call('POST', '/v1/projects', { body: { name: 'Shop' } })).body.id;
    const token = await t.call('POST', '/v1/tokens', {
      body: { name: 'alertmanager', scopes: ['alerts:write'], project_ids: [project] },
    });
    const url = `${t.url}/v1/projects/${project}/alerts/alertmanager?environment=production`;
    alertmanager = await startAlertmanager({ url, token: token.body.token });
  });
  after(async () => {
    await alertmanager.stop();
    await t.stop();
  });

  const alerts = async (): Promise<Alert[]> => (await t.call('GET', `/v1/projects/${project}/alerts`)).body.data;
  const messages = async (): Promise<number> => {
    const rows = await t.app.store.db
      .selectFrom('audit')
      .select('id')
      .where('action', '=', 'alerts.alertmanager')
      .execute();
    return rows.length;
  };

  test('fires once however often it repeats itself, and resolves once', async () => {
    const receiver = await Receiver.open();
    await t.call('POST', '/v1/webhooks', { body: { url: receiver.url, events: ['alert.fired', 'alert.resolved'] } });
    const labels = { alertname: 'HighLoad', severity: 'critical', instance: 'web-1', revision: 'r4' };
    const annotations = { summary: 'Load of web-1 is high.', value: '12.5' };
    await alertmanager.post([{ labels, annotations, startsAt: new Date().toISOString() }]);
    await receiver.has(1);
    await until(`it to repeat itself\n${alertmanager.output()}`, async () =>
      (await messages()) >= 3 ? true : undefined,
    );
    const [alert, ...others] = await alerts();
    assert.deepEqual(others, []);
    assert.deepEqual(
      [alert!.name, alert!.severity, alert!.message, alert!.environment, alert!.revision, alert!.value, alert!.state],
      ['HighLoad', 'critical', 'Load of web-1 is high.', 'production', 'r4', 12.5, 'firing'],
    );
    const startsAt = new Date(Date.now() - 5000).toISOString();
    await alertmanager.post([{ labels, annotations, startsAt, endsAt: new Date().toISOString() }]);
    await receiver.has(2);
    assert.deepEqual(
      receiver.arrivals.map(({ event }) => [event.type, event.data.id, event.data.state]),
      [
        ['alert.fired', alert!.id, 'firing'],
        ['alert.resolved', alert!.id, 'resolved'],
      ],
    );
    assert.equal((await alerts())[0]!.state, 'resolved');
    await receiver.close();
  });

  test('several at once are several incidents of one rule', async () => {
    const one = (instance: string) => ({ labels: { alertname: 'Down', instance }, annotations: {} });
    await alertmanager.post([one('a'), one('b'), one('c')]);
    const down = await until('all three', async () => {
      const found = (await alerts()).filter(({ name }) => name === 'Down');
      return found.length === 3 ? found : undefined;
    });
    assert.equal(new Set(down.map(({ rule_id }) => rule_id)).size, 1);
    const endsAt = new Date().toISOString();
    const startsAt = new Date(Date.now() - 60_000).toISOString();
    await alertmanager.post([{ ...one('b'), startsAt, endsAt }]);
    const left = await until('one to end', async () => {
      const firing = (await alerts()).filter(({ name, state }) => name === 'Down' && state === 'firing');
      return firing.length === 2 ? firing : undefined;
    });
    assert.equal(left.length, 2);
  });
});
