// What lies in the data directory is for its owner alone, also where it was made by hand or by an earlier version.
import assert from 'node:assert/strict';
import { chmodSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { App } from '../../src/app.ts';
import { makeDataDir } from '../../src/data-dir.ts';
import { greeting } from '../../src/greet.ts';
import { StartError } from '../../src/lib/start-error.ts';
import { isolatedEnv } from '../helpers/app.ts';
import { startService } from '../helpers/service.ts';
import { until } from '../helpers/wait.ts';

const modeOf = (path: string) => (statSync(path).mode & 0o7777).toString(8);

/** Everything but the catalogue, which is there to be read. */
const openFiles = (dir: string) =>
  ['.', ...globSync('**/*', { cwd: dir, exclude: ['catalogue/**'] })]
    .filter((path) => path !== 'catalogue' && (statSync(join(dir, path)).mode & 0o077) !== 0)
    .map((path) => `${path} ${modeOf(join(dir, path))}`);

async function folder(t: TestContext, mode: number): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-mode-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  chmodSync(dir, mode);
  return dir;
}

test('a service makes nothing that others can read, and closes what an earlier one left open', async (t) => {
  const { env, dataDir, clean } = await isolatedEnv();
  t.after(clean);
  const run = async (whileItRuns: (output: string) => unknown) => {
    const service = startService({ ...env, SLUICE_ROUTER_WORKERS: '1', SLUICE_ADMIN_TOKEN: '' });
    try {
      await service.url;
      await whileItRuns(service.output());
    } finally {
      service.child.kill('SIGTERM');
      await service.exited;
    }
  };
  const database = join(dataDir, 'sluice.db');
  chmodSync(dataDir, 0o755);
  await run(async (output) => {
    await until('the routing table', () => globSync('routing/*', { cwd: dataDir }).length > 0);
    const token = readFileSync(join(dataDir, 'admin-token'), 'utf8').trim();
    assert.ok(!output.includes(token), 'a log may keep what is printed');
    assert.ok(output.includes(`The admin token is in ${join(dataDir, 'admin-token')}`), output);
    assert.match(output, new RegExp(`in this folder: SLUICE_DATA_DIR=${dataDir} .* projects create`));
  });
  for (const path of globSync('**/*', { cwd: dataDir })) {
    if (statSync(join(dataDir, path)).isFile()) chmodSync(join(dataDir, path), 0o644);
  }
  chmodSync(dataDir, 0o755);
  await run(() => {
    assert.equal(modeOf(dataDir), '700');
    assert.equal(modeOf(database), '600');
    assert.deepEqual(
      openFiles(dataDir).filter((line) => !line.startsWith('routing/')),
      [],
    );
  });
});

test('an empty directory that is open to others is closed to them', async (t) => {
  const dir = await folder(t, 0o755);
  makeDataDir(dir);
  assert.equal(modeOf(dir), '700');
});

test('a directory with other files in it is refused, and left as it is', async (t) => {
  const dir = await folder(t, 0o755);
  mkdirSync(join(dir, 'www'));
  writeFileSync(join(dir, 'notes.txt'), 'not ours');
  assert.throws(
    () => makeDataDir(dir),
    (error: unknown) => {
      assert.ok(error instanceof StartError);
      assert.match(error.lines[0]!, /is open to other users \(mode 755\) and holds other files\..*chmod 700/);
      return true;
    },
  );
  assert.equal(modeOf(dir), '755');
});

test('the first admin token is shown to people at a terminal, and to nobody else', () => {
  const app = {
    config: { roles: ['api'], dataDir: '/data' },
    apiUrl: () => 'http://127.0.0.1:8080',
    routerUrl: null,
    routerTlsPort: null,
    regionLines: [],
    newAdminToken: 'slc_secret',
  } as unknown as App;
  assert.match(greeting(app, null, true).join('\n'), /slc_secret/);
  assert.doesNotMatch(greeting(app, null, false).join('\n'), /slc_secret/);
  assert.match(greeting(app, null, false).join('\n'), /The admin token is in \/data\/admin-token/);
  assert.match(greeting(app, null, false).join('\n'), /sign in with it at http:\/\/127\.0\.0\.1:8080\/console/);
});
