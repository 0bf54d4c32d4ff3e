// The OpenAPI document as strangers use it: two linters find no fault with it, and a client made from it compiles.
// The document does not depend on the database, so this runs once, on SQLite.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { toolsDir } from '../../scripts/test-tools.ts';
import { startApp } from '../helpers/app.ts';

const modules = join(toolsDir, 'node_modules');

const ran = (entry: string, args: string[], cwd: string) => {
  const env = { ...process.env, NO_COLOR: '1', REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(modules, entry), ...args], {
    cwd,
    env,
    encoding: 'utf8',
    timeout: 120_000,
    maxBuffer: 64 * 1024 * 1024,
  });
  return { status, output: stdout + stderr };
};

const programInTypes = `
import type { components, operations, paths } from './types.ts';

type Project = components['schemas']['Project'];
type NewProject = paths['/projects']['post']['requestBody']['content']['application/json'];
type Created = operations['projects.create']['responses'][201]['content']['application/json'];
type Failure = operations['projects.create']['responses'][409]['content']['application/json'];
type Environment = operations['environments.get']['responses'][200]['content']['application/json'];
type Listed = operations['projects.list']['responses'][200]['content']['application/json'];

const wanted: NewProject = { name: 'Shop', labels: ['a'], description: null };
// @ts-expect-error: a project needs a name
const nameless: NewProject = { labels: [] };
// @ts-expect-error: there is no such field
const unknown: NewProject = { name: 'Shop', colour: 'red' };

export async function create(url: string, token: string): Promise<Project | string> {
  const headers = { authorization: \`Bearer \${token}\`, 'content-type': 'application/json' };
  const response = await fetch(\`\${url}/v1/projects\`, { method: 'POST', headers, body: JSON.stringify(wanted) });
  if (response.status === 201) return (await response.json()) as Created;
  const { error } = (await response.json()) as Failure;
  return \`\${error.code} \${error.status} \${error.docs} \${error.details?.map(({ path }) => path).join()}\`;
}

export const summary = ({ canary, locked, traffic }: Environment): string =>
  \`\${canary.advance === 'manual'} \${locked?.reason ?? '-'} \${traffic.map(({ percent }) => percent).join()}\`;

export const next = ({ data, page }: Listed): [Project | undefined, string | null] => [data[0], page.next];
export const used = [nameless, unknown];
`;

const compilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: false,
  target: 'es2023',
  lib: ['es2023', 'dom'],
  module: 'nodenext',
  allowImportingTsExtensions: true,
  types: [],
};

describe('the OpenAPI document', () => {
  let dir: string;
  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-openapi-'));
    const service = await startApp();
    try {
      const { status, body } = await service.call('GET', '/v1/openapi.json', { token: null });
      assert.equal(status, 200);
      assert.equal(body.openapi, '3.1.0');
      writeFileSync(join(dir, 'openapi.json'), JSON.stringify(body, null, 2));
    } finally {
      await service.stop();
    }
  });
  after(() => rmSync(dir, { recursive: true, force: true }));

  test('Redocly, recommended rules: no errors and no warnings', () => {
    const { status, output } = ran('@redocly/cli/bin/cli.js', ['lint', '--extends=recommended', 'openapi.json'], dir);
    assert.equal(status, 0, output);
    assert.match(output, /Your API description is valid/);
    assert.doesNotMatch(output, /\d+ warning/);
  });

  test('Spectral, OWASP rules: no errors', () => {
    const rules = join(modules, '@stoplight', 'spectral-owasp-ruleset', 'dist', 'ruleset.mjs');
    writeFileSync(join(dir, 'rules.json'), JSON.stringify({ extends: [rules] }));
    const args = ['lint', '--ruleset=rules.json', '--fail-severity=error', '--format=json', 'openapi.json'];
    const { status, output } = ran('@stoplight/spectral-cli/dist/index.js', args, dir);
    assert.equal(status, 0, output);
    // The one thing it warns of is that a public route has no 401: it cannot have one.
    const found = JSON.parse(output.slice(0, output.lastIndexOf(']') + 1)) as { code: string; path: string[] }[];
    const others = found.filter(
      ({ code, path }) => code !== 'owasp:api8:2023-define-error-responses-401' || path[1] !== '/openapi.json',
    );
    assert.deepEqual(others, []);
  });

  test('a client made by openapi-typescript compiles, and refuses what the API would', () => {
    const made = ran('openapi-typescript/bin/cli.js', ['openapi.json', '--output', 'types.ts'], dir);
    assert.equal(made.status, 0, made.output);
    writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
    writeFileSync(join(dir, 'client.ts'), programInTypes);
    writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['client.ts'] }));
    const { status, output } = ran('typescript/bin/tsc', ['--project', '.'], dir);
    assert.equal(status, 0, output);
  });
});
