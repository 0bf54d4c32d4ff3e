import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { adminToken, startApp } from '../../helpers/app.ts';
import { cli } from '../../helpers/cli.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

let foreignToken: string;
const t = sharedApp({}, async () => {
  const { stdout } = await cli(['account', 'create', 'Other', '--json'], t.env);
  foreignToken = JSON.parse(stdout).token;
});

const newToken = async (body: object, token = adminToken) =>
  t.call('POST', '/v1/tokens', { token, body: { name: 'x', ...body } });
const newProject = async (name: string, token = adminToken) =>
  (await t.call('POST', '/v1/projects', { token, body: { name } })).body.id as string;

test('a new token shows its secret once, works, and is listed without it', async () => {
  const { status, body, headers } = await newToken({ scopes: ['projects:read', 'tokens:read'] });
  assert.equal(status, 201);
  assert.match(body.token, /^slc_[0-9A-Za-z]{36}$/);
  assert.equal(headers.get('location'), `${t.url}/v1/tokens/${body.id}`);
  const { token, ...shown } = body;
  assert.deepEqual((await t.call('GET', `/v1/tokens/${body.id}`, { token })).body, shown);
  assert.deepEqual((await t.call('GET', '/v1/token', { token })).body, shown);
  assert.deepEqual((await t.call('GET', '/v1/tokens')).body.data[0], shown);
});

test('a token cannot make a token that can do more than itself', async () => {
  const project = await newProject('a');
  const { body: small } = await newToken({ scopes: ['tokens:write', 'projects:read'] });
  for (const scopes of [['*'], ['projects:write'], ['projects:read', 'tokens:read']]) {
    const { status, body } = await newToken({ scopes }, small.token);
    assert.equal(status, 403);
    assert.equal(body.error.code, 'insufficient_scope');
  }
  assert.equal((await newToken({ scopes: ['projects:read'] }, small.token)).status, 201);

  const { body: bound } = await newToken({ scopes: ['*'], project_ids: [project] });
  assert.equal((await newToken({ scopes: ['*'], project_ids: null }, bound.token)).status, 403);
  assert.equal((await newToken({ scopes: ['*'], project_ids: [await newProject('b')] }, bound.token)).status, 404);
  const { body: inherited } = await newToken({ scopes: ['projects:read'] }, bound.token);
  assert.deepEqual(inherited.project_ids, [project]);
});

test('last_used_at tells, to the minute, when a token was used', async () => {
  let nowMs = 1_800_000_000_000;
  const own = await startApp({ clock: { now: () => nowMs } });
  const { body } = await own.call('POST', '/v1/tokens', { body: { name: 'x', scopes: ['*'] } });
  assert.equal(body.last_used_at, null);
  nowMs += 1000;
  await own.call('GET', '/v1/token', { token: body.token });
  await own.app.lastUsed.flush(own.app.store.db);
  const { last_used_at } = (await own.call('GET', `/v1/tokens/${body.id}`)).body;
  assert.equal(last_used_at, new Date(nowMs).toISOString());
  await own.stop();
});

test('sluice token create makes a token of the first account, with the scopes it is told', async () => {
  const { code, stdout } = await cli(
    ['token', 'create', 'ci', '--scope', 'projects:read', '--days', '1', '--json'],
    t.env,
  );
  assert.equal(code, 0);
  const { token } = JSON.parse(stdout);
  const { body } = await t.call('GET', '/v1/token', { token });
  assert.deepEqual(body.scopes, ['projects:read']);
  assert.ok(Date.parse(body.expires_at) > Date.now());
  const wrong = await cli(['token', 'create', 'ci', '--scope', 'everything'], t.env);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /no scope everything/);
});

describe('isolation', () => {
  const missing = (code: string) => ({ status: 404, code });
  const outcome = ({ status, body }: { status: number; body: { error: { code: string; message: string } } }) => ({
    status,
    code: body.error.code,
  });

  test('another account’s project, environment and token are the same 404 as what never existed', async () => {
    const project = await newProject('secret');
    const { body: token } = await newToken({ scopes: ['*'] });
    for (const [method, path, code] of [
      ['GET', `/v1/projects/${project}`, 'project_not_found'],
      ['PATCH', `/v1/projects/${project}`, 'project_not_found'],
      ['DELETE', `/v1/projects/${project}`, 'project_not_found'],
      ['GET', `/v1/projects/${project}/environments`, 'project_not_found'],
      ['POST', `/v1/projects/${project}/environments`, 'project_not_found'],
      ['GET', `/v1/projects/${project}/environments/production`, 'project_not_found'],
      ['PATCH', `/v1/projects/${project}/environments/production`, 'project_not_found'],
      ['DELETE', `/v1/projects/${project}/environments/production`, 'project_not_found'],
      ['GET', `/v1/tokens/${token.id}`, 'token_not_found'],
      ['DELETE', `/v1/tokens/${token.id}`, 'token_not_found'],
    ] as const) {
      const body = method === 'POST' ? { name: 'x' } : method === 'PATCH' ? {} : undefined;
      const options = { token: foreignToken, body };
      const theirs = await t.call(method, path, options);
      assert.deepEqual(outcome(theirs), missing(code), `${method} ${path}`);
      const id = path.split('/')[3]!;
      const never = `${id.slice(0, 4)}0${id.slice(5, -4)}zzzz`;
      const unknown = await t.call(method, path.replace(id, never), options);
      assert.equal(theirs.body.error.message.replace(id, never), unknown.body.error.message);
    }
    assert.equal((await t.call('GET', `/v1/projects/${project}`)).status, 200);
  });

  test('lists show only the own account', async () => {
    await newProject('mine');
    const theirs = await newProject('theirs', foreignToken);
    for (const path of ['/v1/projects', '/v1/tokens', '/v1/audit-log']) {
      const { body } = await t.call('GET', `${path}?limit=100`, { token: foreignToken });
      assert.ok(body.data.length > 0);
      const text = JSON.stringify(body);
      assert.ok(!text.includes('mine') && !text.includes('secret'), path);
    }
    assert.equal((await t.call('GET', `/v1/projects/${theirs}`)).status, 404);
  });

  test('two accounts may use one slug; their addresses differ', async () => {
    const create = (token: string) => t.call('POST', '/v1/projects', { token, body: { name: 'same', slug: 'same' } });
    const [one, two] = [await create(adminToken), await create(foreignToken)];
    assert.deepEqual([one.status, two.status], [201, 201]);
    const url = async (id: string, token: string) =>
      (await t.call('GET', `/v1/projects/${id}/environments/production`, { token })).body.url;
    assert.notEqual(await url(one.body.id, adminToken), await url(two.body.id, foreignToken));
  });

  test('a token bound to projects sees nothing of the others', async () => {
    const [own, other] = [await newProject('own'), await newProject('other')];
    const { body } = await newToken({ scopes: ['*'], project_ids: [own] });
    const token = body.token;
    const listed = await t.call('GET', '/v1/projects', { token });
    assert.deepEqual(
      listed.body.data.map((project: { id: string }) => project.id),
      [own],
    );
    assert.equal((await t.call('GET', `/v1/projects/${other}`, { token })).status, 404);
    assert.equal((await t.call('GET', `/v1/projects/${other}/environments`, { token })).status, 404);
    assert.equal((await t.call('POST', '/v1/projects', { token, body: { name: 'x' } })).status, 403);
    const tokens = await t.call('GET', '/v1/tokens', { token });
    assert.deepEqual(
      tokens.body.data.map((item: { id: string }) => item.id),
      [body.id],
    );
    await t.call('PATCH', `/v1/projects/${own}`, { token, body: { name: 'renamed' } });
    const audit = await t.call('GET', '/v1/audit-log?limit=100', { token });
    assert.ok(audit.body.data.length > 0);
    for (const entry of audit.body.data) assert.equal(entry.project_id, own);
  });
});
