// Messages of Alertmanager, as it would send them; alertmanager.test.ts has the real one send some.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alertmanagerMessage as message } from '../../helpers/alertmanager.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

let nowMs = Date.parse('2026-11-15T08:30:07.000Z');
const clock = { now: () => nowMs };
const t = sharedApp({ tokenLimit: 1_000_000, clock, env: { SLUICE_ROLES: 'api' } });

const { newProject } = t;

const rulesOf = async (project: string, query = '') =>
  (await t.call('GET', `/v1/projects/${project}/alert-rules${query}`)).body.data;

const eventsOf = async (project: string) =>
  (await t.call('GET', `/v1/events?project_id=${project}&limit=100`)).body.data.reverse();

const tell = (project: string, body: object, query = '') =>
  t.call('POST', `/v1/projects/${project}/alerts/alertmanager${query}`, { body });

test('fire and resolve once each, with their events, however often they come', async () => {
  const project = await newProject();
  const labels = { alertname: 'DiskFull', severity: 'critical', revision: 'r3', instance: 'db1' };
  const annotations = { summary: 'The disk of db1 is full.', value: '97.5' };
  const firing = message({ labels, annotations });
  assert.deepEqual((await tell(project, firing)).body, { fired: 1, resolved: 0 });
  assert.deepEqual((await tell(project, firing)).body, { fired: 0, resolved: 0 });
  const [rule] = await rulesOf(project);
  assert.deepEqual([rule.name, rule.metric, rule.severity], ['DiskFull', 'external', 'critical']);
  const [alert] = (await t.call('GET', `/v1/projects/${project}/alerts`)).body.data;
  assert.deepEqual(alert, {
    id: alert.id,
    rule_id: rule.id,
    name: 'DiskFull',
    severity: 'critical',
    message: 'The disk of db1 is full.',
    environment: 'production',
    revision: 'r3',
    hostname: null,
    state: 'firing',
    value: 97.5,
    fired_at: new Date(nowMs).toISOString(),
    resolved_at: null,
  });
  nowMs += 60_000;
  const over = message({ labels, annotations, status: 'resolved', endsAt: '2026-11-15T08:31:00.000Z' });
  assert.deepEqual((await tell(project, over)).body, { fired: 0, resolved: 1 });
  assert.deepEqual((await tell(project, over)).body, { fired: 0, resolved: 0 });
  const ended = { ...alert, state: 'resolved', resolved_at: new Date(nowMs).toISOString() };
  assert.deepEqual((await t.call('GET', `/v1/projects/${project}/alerts/${alert.id}`)).body, ended);
  const events = await eventsOf(project);
  assert.deepEqual(
    events.map(({ type, data }: { type: string; data: object }) => ({ type, data })),
    [
      { type: 'alert.fired', data: alert },
      { type: 'alert.resolved', data: ended },
    ],
  );
  assert.deepEqual((await tell(project, firing)).body, { fired: 1, resolved: 0 }, 'the next time is another incident');
});

test('an alert is about the environment in its label, else the one asked for, else production, else 422', async () => {
  const project = await newProject();
  await t.call('POST', `/v1/projects/${project}/environments`, { body: { name: 'staging' } });
  const environments = async () =>
    (await t.call('GET', `/v1/projects/${project}/alerts`)).body.data.map(
      (alert: { environment: string }) => alert.environment,
    );
  const labelled = (environment: string) => ({ alertname: 'X', environment });
  await tell(project, message({ labels: labelled('staging'), fingerprint: 'a' }));
  await tell(project, message({ labels: labelled('elsewhere'), fingerprint: 'b' }), '?environment=staging');
  await tell(project, message({ labels: labelled('elsewhere'), fingerprint: 'c' }));
  assert.deepEqual(await environments(), ['production', 'staging', 'staging']);
  await t.call('DELETE', `/v1/projects/${project}/environments/production`);
  for (const query of ['', '?environment=nowhere']) {
    const { status, body } = await tell(project, message({ fingerprint: 'd' }), query);
    assert.deepEqual([status, body.error.code], [422, 'environment_unknown']);
  }
  assert.equal((await environments()).length, 2, 'production took its alerts along');
  const told = (await eventsOf(project)).map(({ type, data }: { type: string; data: { environment: string } }) => [
    type,
    data.environment,
  ]);
  assert.deepEqual(told.at(-1), ['alert.resolved', 'production'], 'and said that they are over');
});

test('odd messages: no name, a name taken by a measured rule, a value that is none, a name of any length', async () => {
  const project = await newProject();
  const alerts = [
    { labels: {}, fingerprint: 'a' },
    { labels: { alertname: 'Errors', severity: 'page' }, annotations: { value: 'many' }, fingerprint: 'b' },
    { labels: { alertname: '😀'.repeat(80), revision: 'latest' }, fingerprint: 'c' },
    { labels: { alertname: 'gone' }, status: 'resolved', fingerprint: 'd' },
  ];
  assert.deepEqual((await tell(project, message(...alerts))).body, { fired: 3, resolved: 0 });
  const { data } = (await t.call('GET', `/v1/projects/${project}/alerts`)).body;
  const shown = data.map((alert: { name: string; severity: string; revision: string | null; value: number }) => [
    alert.name,
    alert.severity,
    alert.revision,
    alert.value,
  ]);
  assert.deepEqual(shown.reverse(), [
    ['Alertmanager', 'warning', null, 1],
    ['Errors (Alertmanager)', 'warning', null, 1],
    ['😀'.repeat(50), 'warning', null, 1],
  ]);
  assert.equal((await rulesOf(project)).length, 5, 'what only ended makes no rule');
  assert.deepEqual((await tell(project, message(...alerts))).body, { fired: 0, resolved: 0 });
});

test('1,000 alerts of one message; too many rules are refused whole', async () => {
  const project = await newProject();
  const many = Array.from({ length: 1000 }, (_, i) => ({ fingerprint: i.toString(16) }));
  assert.deepEqual((await tell(project, message(...many))).body, { fired: 1000, resolved: 0 });
  const over = many.map((alert) => ({ ...alert, status: 'resolved' }));
  assert.deepEqual((await tell(project, message(...over))).body, { fired: 0, resolved: 1000 });
  const names = Array.from({ length: 98 }, (_, i) => ({ labels: { alertname: `a${i}` }, fingerprint: 'f' }));
  const { status, body } = await tell(project, message(...names));
  assert.deepEqual([status, body.error.code], [422, 'quota_exceeded']);
  assert.equal((await rulesOf(project, '?limit=100')).length, 3);
});

test('20 messages at once that bring a new rule: one rule, one alert, one event', async () => {
  const project = await newProject();
  const results = await Promise.all(Array.from({ length: 20 }, () => tell(project, message({}))));
  assert.equal(
    results.reduce((sum, { body }) => sum + body.fired, 0),
    1,
  );
  assert.equal((await eventsOf(project)).length, 1);
});

test('a disabled rule resolves its alerts and ignores messages; a deleted rule leaves its alerts', async () => {
  const project = await newProject();
  await tell(project, message({}));
  const [rule] = await rulesOf(project);
  const at = `/v1/projects/${project}/alert-rules/${rule.id}`;
  await t.call('PATCH', at, { body: { enabled: false } });
  const list = async (query = '') => (await t.call('GET', `/v1/projects/${project}/alerts${query}`)).body.data;
  assert.equal((await list())[0].state, 'resolved');
  assert.deepEqual((await tell(project, message({}))).body, { fired: 0, resolved: 0 });
  await t.call('PATCH', at, { body: { enabled: true } });
  assert.deepEqual((await tell(project, message({}))).body, { fired: 1, resolved: 0 });
  assert.equal((await t.call('DELETE', at)).status, 204);
  const alerts = await list(`?rule_id=${rule.id}`);
  assert.deepEqual(
    alerts.map((alert: { state: string }) => alert.state),
    ['resolved', 'resolved'],
  );
  assert.deepEqual(
    (await eventsOf(project)).map((event: { type: string }) => event.type),
    ['alert.fired', 'alert.resolved', 'alert.fired', 'alert.resolved'],
  );
  assert.equal((await list('?state=firing')).length, 0);
  assert.equal((await list('?state=resolved&limit=1')).length, 1);
  assert.equal((await list('?environment=staging')).length, 0);
});
