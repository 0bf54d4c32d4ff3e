// One test per row of the specification's tables for interface B, named after the row; spec-authentication.test.ts and
// spec-limits.test.ts have the others.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorCatalogue } from '../../../src/contract/errors.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const t = sharedApp();

const newProject = async (body: object = {}) =>
  (await t.call('POST', '/v1/projects', { body: { name: 'Shop', ...body } })).body;

describe('spec: endpoints B', () => {
  test('GET /projects lists projects in the list envelope', async () => {
    const project = await newProject();
    const { status, body } = await t.call('GET', '/v1/projects');
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(body), ['data', 'page']);
    assert.deepEqual(Object.keys(body.page), ['next', 'has_more']);
    assert.deepEqual(body.data[0], project);
  });

  test('POST /projects creates a project', async () => {
    const { status, body, headers } = await t.call('POST', '/v1/projects', {
      body: { name: 'Crème Brûlée', description: 'sweet', labels: ['a', 'b'] },
    });
    assert.equal(status, 201);
    assert.match(body.id, /^prj_[0-9a-hjkmnp-tv-z]{26}$/);
    assert.equal(headers.get('location'), `${t.url}/v1/projects/${body.id}`);
    const { id, created_at, updated_at, health, ...rest } = body;
    assert.deepEqual([health.environment, health.state, health.reason], ['production', 'idle', null]);
    assert.deepEqual(rest, {
      name: 'Crème Brûlée',
      slug: 'creme-brulee',
      description: 'sweet',
      labels: ['a', 'b'],
      environments: ['production'],
    });
    assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.equal(updated_at, created_at);
  });

  test('GET /projects/{id} gets one project', async () => {
    const project = await newProject();
    const { status, body } = await t.call('GET', `/v1/projects/${project.id}`);
    assert.equal(status, 200);
    assert.deepEqual(body, project);
  });

  test('PATCH /projects/{id} changes project settings and leaves out what is left out', async () => {
    const project = await newProject({ description: 'old', labels: ['x'] });
    const { status, body } = await t.call('PATCH', `/v1/projects/${project.id}`, { body: { name: 'New' } });
    assert.equal(status, 200);
    assert.deepEqual({ ...body, updated_at: project.updated_at }, { ...project, name: 'New' });
    const cleared = await t.call('PATCH', `/v1/projects/${project.id}`, { body: { description: null } });
    assert.equal(cleared.body.description, null);
    assert.equal(cleared.body.name, 'New');
  });

  test('DELETE /projects/{id} deletes a project', async () => {
    const project = await newProject();
    const { status, body } = await t.call('DELETE', `/v1/projects/${project.id}`);
    assert.equal(status, 204);
    assert.equal(body, '');
    for (const path of ['', '/environments', '/environments/production']) {
      const gone = await t.call('GET', `/v1/projects/${project.id}${path}`);
      assert.equal(gone.status, 404);
      assert.equal(gone.body.error.code, 'project_not_found');
    }
  });

  test('all responses are JSON in UTF-8', async () => {
    const { headers } = await t.call('GET', '/v1/projects');
    assert.equal(headers.get('content-type'), 'application/json; charset=utf-8');
  });
});

describe('spec: error body', () => {
  test('code, message, status, request_id and docs', async () => {
    const { status, body, headers } = await t.call('GET', '/v1/projects/prj_00000000000000000000000000');
    assert.deepEqual(Object.keys(body), ['error']);
    const { error } = body;
    assert.equal(error.code, 'project_not_found');
    assert.equal(typeof error.message, 'string');
    assert.equal(error.status, status);
    assert.match(error.request_id, /^req_[0-9a-hjkmnp-tv-z]{26}$/);
    assert.equal(error.request_id, headers.get('x-request-id'));
    assert.equal(error.docs, `${t.url}/docs/errors#project_not_found`);
  });

  test('docs is a page that the service serves, with an anchor for every code', async () => {
    const { status, body } = await t.call('GET', '/docs/errors', { token: null });
    assert.equal(status, 200);
    for (const code of Object.keys(errorCatalogue)) assert.ok(body.includes(`id="${code}"`), code);
  });
});

describe('spec: status codes', () => {
  test('400 when the body fails validation, with every fault named', async () => {
    const { status, body } = await t.call('POST', '/v1/projects', { body: { name: 7, colour: 'red' } });
    assert.equal(status, 400);
    assert.equal(body.error.code, 'invalid_request');
    assert.deepEqual(body.error.details.map((detail: { path: string }) => detail.path).sort(), [
      'body.colour',
      'body.name',
    ]);
  });

  test('400 when a parameter fails validation', async () => {
    for (const query of ['limit=0', 'limit=101', 'limit=abc', 'limit=1&limit=2', 'nonsense=1', 'limit=1e1']) {
      const { status, body } = await t.call('GET', `/v1/projects?${query}`);
      assert.equal(status, 400, query);
      assert.equal(body.error.code, 'invalid_request');
      assert.ok(body.error.details[0].path.startsWith('query.'), query);
    }
  });

  test('400 when the body is not JSON', async () => {
    const { status, body } = await t.call('POST', '/v1/projects', { body: '{"name":' });
    assert.equal(status, 400);
    assert.equal(body.error.code, 'invalid_json');
  });

  test('404 when a resource or path does not exist', async () => {
    assert.equal((await t.call('GET', '/v1/projects/nothing')).body.error.code, 'project_not_found');
    assert.equal((await t.call('GET', '/v1/nothing')).body.error.code, 'route_not_found');
    assert.equal((await t.call('GET', '/v1/nothing', { token: null })).body.error.code, 'route_not_found');
  });

  test('405 names the methods that exist', async () => {
    const { status, body, headers } = await t.call('PUT', '/v1/projects');
    assert.equal(status, 405);
    assert.equal(body.error.code, 'method_not_allowed');
    assert.equal(headers.get('allow'), 'HEAD, GET, POST');
    const unknown = await t.call('QUERY', '/v1/projects');
    assert.deepEqual([unknown.status, unknown.headers.get('allow')], [405, 'HEAD, GET, POST']);
    // Two routes match: each method is named once.
    assert.equal((await t.call('PUT', '/v1/events/stream')).headers.get('allow'), 'HEAD, GET');
  });

  test('409 on a conflict, which names its cause', async () => {
    await newProject({ slug: 'taken' });
    const { status, body } = await t.call('POST', '/v1/projects', { body: { name: 'x', slug: 'taken' } });
    assert.equal(status, 409);
    assert.equal(body.error.code, 'slug_taken');
    assert.deepEqual(body.error.details, [{ path: 'body.slug', message: 'taken' }]);
  });

  test('413 for a body over 1 MiB', async () => {
    const { status, body } = await t.call('POST', '/v1/projects', { body: { name: 'x'.repeat(1024 * 1024) } });
    assert.equal(status, 413);
    assert.equal(body.error.code, 'body_too_large');
  });

  test('415 for a body that is not said to be JSON', async () => {
    const { status, body } = await t.call('POST', '/v1/projects', {
      body: '{"name":"x"}',
      headers: { 'content-type': 'text/plain' },
    });
    assert.equal(status, 415);
    assert.equal(body.error.code, 'unsupported_media_type');
  });

  test('422 when it is well formed but cannot be carried out', async () => {
    const { status, body } = await t.call('POST', '/v1/projects', { body: { name: 'x', region: 'mars' } });
    assert.equal(status, 422);
    assert.equal(body.error.code, 'region_unknown');
  });
});
