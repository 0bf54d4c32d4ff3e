// What the docs say exists, exists; what exists, the docs say.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { cliPage } from '../../scripts/cli-docs.ts';
import { generatedDocs } from '../../scripts/docs.ts';
import { routes } from '../../src/contract/api.ts';
import { errorCatalogue } from '../../src/contract/errors.ts';
import { scopes } from '../../src/contract/scopes.ts';
import { settings } from '../../src/settings.ts';
import { onPostgres, startApp } from '../helpers/app.ts';

const read = (path: string) => readFileSync(path, 'utf8');
const sources = globSync('src/**/*.ts').filter((path) => !path.endsWith('.test.ts'));

/** Names that only a test, the command line or a child of the supervisor reads. */
const otherVariables = new Set([
  ...[
    'SLUICE_TOKEN',
    'SLUICE_PROJECT',
    'SLUICE_TEST_POSTGRES',
    'SLUICE_TEST_TRACE',
    'SLUICE_TEST_PICTURES',
    'SLUICE_TEST_KUBECONFIG',
    'SLUICE_TEST_REGISTRY',
  ],
  ...['SLUICE_CONTROL', 'SLUICE_WORKER'],
]);

if (!onPostgres) {
  for (const [path, content] of Object.entries(generatedDocs())) {
    test(`${path} is what the code declares (npm run docs)`, () => assert.equal(read(path), content));
  }

  test('docs/cli.md lists the commands as they are declared (npm run docs)', async () =>
    assert.equal(read('docs/cli.md'), await cliPage()));

  test('every setting that code or docs name is declared', () => {
    for (const path of [...sources, ...globSync('docs/**/*.md'), 'README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md']) {
      for (const [name] of read(path).matchAll(/\bSLUICE_[A-Z_]+[A-Z]\b/g)) {
        assert.ok(name in settings || otherVariables.has(name), `${path} names ${name}`);
      }
    }
  });

  test('every figure for Prometheus is in the docs, and every one they name exists', () => {
    const figures = (paths: string[]) =>
      new Set(
        paths.flatMap(
          (path) => read(path).match(/\bsluice_[a-z_]+(?:_seconds|_total|_firing|_instances|_bytes)\b/g) ?? [],
        ),
      );
    const made = figures(sources);
    const told = figures(globSync('docs/*.md'));
    assert.ok(made.size > 5);
    assert.deepEqual([...told].sort(), [...made].sort());
  });

  test('every error code is used somewhere, and every code that prose names exists', () => {
    const code = sources
      .filter((path) => path !== 'src/contract/errors.ts')
      .map(read)
      .join('\n');
    const byParam = read('src/contract/errors.ts').slice(read('src/contract/errors.ts').indexOf('notFoundByParam'));
    for (const name of Object.keys(errorCatalogue)) assert.ok((code + byParam).includes(`'${name}'`), name);
    for (const path of [...globSync('docs/**/*.md'), 'README.md']) {
      for (const [, name] of read(path).matchAll(/errors#([a-z_]+)/g))
        assert.ok(name! in errorCatalogue, `${path}: ${name}`);
    }
  });

  test('every scope guards a route or is reserved by the contract for one to come', () => {
    const used = new Set(routes.map((route) => route.scope));
    for (const scope of used) if (scope !== null && scope !== 'public') assert.ok(scopes.includes(scope));
  });

  test('every npm script the docs name exists, and the commands of the README are the ones of the set-up', () => {
    const { scripts } = JSON.parse(read('package.json'));
    for (const path of [...globSync('docs/**/*.md'), 'README.md', 'CONTRIBUTING.md']) {
      for (const [, name] of read(path).matchAll(/npm run ([a-z-]+)/g))
        assert.ok(name! in scripts, `${path}: npm run ${name}`);
    }
    for (const command of ['npm ci && npm start', 'npm ci && npm test']) assert.ok(read('README.md').includes(command));
    assert.ok(read('.ci/run').includes('npm ci && npm test'));
  });
}

test('every declared route is served, and the OpenAPI document has those routes and no others', async () => {
  const t = await startApp();
  for (const { method, path } of routes) {
    assert.ok(
      t.app.server.hasRoute({ method, url: `/v1${path.replaceAll(/\{(\w+)\}/g, ':$1')}` }),
      `${method} ${path}`,
    );
  }
  const { body } = await t.call('GET', '/v1/openapi.json', { token: null });
  const documented = Object.entries(body.paths).flatMap(([path, operations]) =>
    Object.keys(operations as object).map((method) => `${method.toUpperCase()} ${path}`),
  );
  assert.deepEqual(documented.sort(), routes.map(({ method, path }) => `${method} ${path}`).sort());
  await t.stop();
});
