import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { insertDomainRule } from '../../../src/alerts/default-rules.ts';
import { alertmanagerMessage } from '../../helpers/alertmanager.ts';
import { cli } from '../../helpers/cli.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

let nowMs = Date.parse('2026-11-15T08:30:07.000Z');
const clock = { now: () => nowMs };
const t = sharedApp({ tokenLimit: 1_000_000, clock, env: { SLUICE_ROLES: 'api' } });

const { newProject } = t;

const rulesOf = async (project: string, query = '') =>
  (await t.call('GET', `/v1/projects/${project}/alert-rules${query}`)).body.data;

const slow = { environment: 'production', name: 'Slow', metric: 'p95_ms', comparator: 'gt', threshold: 500 };
const post = async (project: string, body: object) => {
  const result = await t.call('POST', `/v1/projects/${project}/alert-rules`, { body });
  return [result.status, result.body.error?.code ?? result.body.name, result.body.error?.details];
};

const tell = (project: string, body: object, query = '') =>
  t.call('POST', `/v1/projects/${project}/alerts/alertmanager${query}`, { body });

describe('rules', () => {
  test('a new environment has two default rules, whether it was created with its project or later', async () => {
    const project = await newProject();
    await t.call('POST', `/v1/projects/${project}/environments`, { body: { name: 'staging' } });
    for (const environment of ['production', 'staging']) {
      const rules = await rulesOf(project, `?environment=${environment}`);
      const common = { environment, hostname: null, window_s: 60, severity: 'critical', enabled: true };
      assert.deepEqual(
        rules.map(({ id, created_at, updated_at, ...rule }: { id: string; created_at: string; updated_at: string }) => {
          assert.match(id, /^rul_/);
          assert.equal(created_at, updated_at);
          return rule;
        }),
        [
          {
            ...common,
            ...{ name: 'Instances', metric: 'healthy_instances', comparator: 'lt', threshold: 1, for_s: 15 },
            on_canary: 'none',
          },
          {
            ...common,
            ...{ name: 'Errors', metric: 'error_rate', comparator: 'gt', threshold: 0.05, for_s: 0 },
            on_canary: 'abort',
          },
        ],
      );
    }
    assert.equal((await rulesOf(project)).length, 4);
  });

  test('201 with the given fields and the defaults; GET returns the same', async () => {
    const project = await newProject();
    const { status, body, headers } = await t.call('POST', `/v1/projects/${project}/alert-rules`, { body: slow });
    assert.equal(status, 201);
    assert.equal(headers.get('location'), `${t.url}/v1/projects/${project}/alert-rules/${body.id}`);
    assert.match(headers.get('etag')!, /^"v1[."]/);
    const { id, created_at, updated_at, ...rest } = body;
    const defaults = { hostname: null, window_s: 60, for_s: 0, severity: 'warning', on_canary: 'none', enabled: true };
    assert.deepEqual(rest, { ...slow, ...defaults });
    assert.deepEqual((await t.call('GET', `/v1/projects/${project}/alert-rules/${id}`)).body, body);
  });

  test('400 for fields that contradict each other, 409 for a name twice, 422 for an unknown environment or too many rules', async () => {
    const project = await newProject();
    const { comparator, threshold, ...bare } = slow;
    assert.deepEqual(await post(project, bare), [
      400,
      'invalid_request',
      [
        { path: 'body.comparator', message: 'is missing' },
        { path: 'body.threshold', message: 'is missing' },
      ],
    ]);
    const onlyCertificates = [{ path: 'body.hostname', message: 'only with metric certificate_days_left' }];
    assert.deepEqual(await post(project, { ...slow, hostname: 'a.example' }), [
      400,
      'invalid_request',
      onlyCertificates,
    ]);
    assert.deepEqual((await post(project, { ...bare, metric: 'external' })).slice(0, 2), [201, 'Slow']);
    assert.deepEqual((await post(project, slow)).slice(0, 2), [409, 'alert_rule_exists']);
    assert.deepEqual((await post(project, { ...slow, environment: 'nowhere' })).slice(0, 2), [
      422,
      'environment_unknown',
    ]);
    const certificate = {
      ...slow,
      name: 'C',
      metric: 'certificate_days_left',
      comparator: 'lt',
      hostname: 'a.example',
    };
    assert.deepEqual((await post(project, certificate)).slice(0, 2), [201, 'C']);
    for (let i = 3; i < 100; i++) assert.equal((await post(project, { ...slow, name: `rule ${i}` }))[0], 201);
    assert.deepEqual((await post(project, { ...slow, name: 'one more' })).slice(0, 2), [422, 'quota_exceeded']);
  });

  test('PATCH changes what it names; a name that is taken is 409', async () => {
    const project = await newProject();
    const [instances] = await rulesOf(project);
    const at = `/v1/projects/${project}/alert-rules/${instances.id}`;
    nowMs += 1000;
    const { status, body } = await t.call('PATCH', at, { body: { for_s: 30, enabled: false, severity: 'info' } });
    assert.equal(status, 200);
    assert.deepEqual(body, {
      ...instances,
      for_s: 30,
      enabled: false,
      severity: 'info',
      updated_at: new Date(nowMs).toISOString(),
    });
    assert.equal((await t.call('PATCH', at, { body: {} })).status, 400);
    assert.equal((await t.call('PATCH', at, { body: { metric: 'p95_ms' } })).status, 400);
    const taken = await t.call('PATCH', at, { body: { name: 'Errors' } });
    assert.deepEqual([taken.status, taken.body.error.code], [409, 'alert_rule_exists']);
  });

  test('DELETE removes a rule; deleting an environment deletes its rules', async () => {
    const project = await newProject();
    const [rule] = await rulesOf(project);
    const at = `/v1/projects/${project}/alert-rules/${rule.id}`;
    assert.equal((await t.call('DELETE', at)).status, 204);
    assert.deepEqual((await t.call('GET', at)).body.error.code, 'alert_rule_not_found');
    assert.equal((await t.call('DELETE', `/v1/projects/${project}/environments/production`)).status, 204);
    assert.deepEqual(await rulesOf(project), []);
  });

  test('the rule of a domain has a name within the limit, and is created once', async () => {
    const project = await newProject();
    const hostname = `${'a'.repeat(60)}.${'b'.repeat(60)}.example`;
    const source = { ids: (prefix: string) => `${prefix}_${Math.random()}`, clock };
    const place = { projectId: project, environment: 'production', hostname };
    for (let i = 0; i < 2; i++) await t.app.store.db.transaction().execute((tx) => insertDomainRule(tx, source, place));
    const rules = (await rulesOf(project)).filter((rule: { hostname: string }) => rule.hostname === hostname);
    assert.equal(rules.length, 1);
    assert.ok(rules[0].name.length <= 100);
  });

  test('pages and filters, each page a stretch of the list', async () => {
    const project = await newProject();
    for (let i = 0; i < 5; i++) await post(project, { ...slow, name: `rule ${i}` });
    const all = (await rulesOf(project)).map((rule: { id: string }) => rule.id);
    const walked: string[] = [];
    let cursor = '';
    do {
      const { body } = await t.call('GET', `/v1/projects/${project}/alert-rules?limit=2${cursor}`);
      walked.push(...body.data.map((rule: { id: string }) => rule.id));
      cursor = body.page.next === null ? '' : `&cursor=${body.page.next}`;
    } while (cursor);
    assert.deepEqual(walked, all);
    assert.deepEqual(walked, [...walked].sort().reverse());
  });
});

test('another account sees nothing of it, and neither does a token bound elsewhere or without the scope', async () => {
  const project = await newProject();
  await tell(project, alertmanagerMessage({}));
  const [rule] = await rulesOf(project);
  const [alert] = (await t.call('GET', `/v1/projects/${project}/alerts`)).body.data;
  const other = await newProject('Other');
  const { stdout } = await cli(['account', 'create', 'Other', '--json'], t.env);
  const foreign = JSON.parse(stdout).token;
  const tokenOf = async (body: object) =>
    (await t.call('POST', '/v1/tokens', { body: { name: 'x', scopes: ['*'], ...body } })).body.token;
  const bound = await tokenOf({ project_ids: [other] });
  const paths: [string, string, string, object?][] = [
    ['GET', `/v1/projects/${project}/alert-rules`, 'project_not_found'],
    ['POST', `/v1/projects/${project}/alert-rules`, 'project_not_found', slow],
    ['GET', `/v1/projects/${project}/alert-rules/${rule.id}`, 'project_not_found'],
    ['PATCH', `/v1/projects/${project}/alert-rules/${rule.id}`, 'project_not_found', { for_s: 1 }],
    ['DELETE', `/v1/projects/${project}/alert-rules/${rule.id}`, 'project_not_found'],
    ['GET', `/v1/projects/${project}/alerts`, 'project_not_found'],
    ['GET', `/v1/projects/${project}/alerts/${alert.id}`, 'project_not_found'],
    ['POST', `/v1/projects/${project}/alerts/alertmanager`, 'project_not_found', alertmanagerMessage({})],
    ['GET', `/v1/projects/${project}/metrics`, 'project_not_found'],
  ];
  for (const [method, path, code, body] of paths) {
    for (const token of [foreign, bound]) {
      const answer = await t.call(method, path, { token, body });
      assert.deepEqual([answer.status, answer.body.error.code], [404, code], `${method} ${path}`);
    }
    const reader = await tokenOf({ scopes: [method === 'GET' ? 'alerts:write' : 'alerts:read'] });
    const answer = await t.call(method, path, { token: reader, body });
    assert.deepEqual([answer.status, answer.body.error.code], [403, 'insufficient_scope'], `${method} ${path}`);
  }
  for (const what of [`alert-rules/${rule.id}`, `alerts/${alert.id}`]) {
    assert.equal((await t.call('GET', `/v1/projects/${other}/${what}`)).status, 404, 'nor through another project');
  }
});
