import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../helpers/wait.ts';
import { makeFolder, makeSource, runCatalogue, startCatalogue, writeManifest } from './fixture.ts';

test('build, serve, withdraw, as one would on a first day', async (t) => {
  const folder = await makeFolder(t);
  const site = join(folder, 'site');
  await makeSource(folder, 'a.mp4');
  const manifest = await writeManifest(folder, ['{ id: a, title: A, source: a.mp4, progressive: [36p] }']);
  const env = { SLUICE_CATALOGUE_DIR: site };
  const built = await runCatalogue(['build', manifest], env);
  assert.equal(built.code, 0, built.stderr);
  assert.match(built.stdout, /a: encoding\n[\s\S]*published a\n1 streams/);
  assert.match((await runCatalogue(['build', manifest], env)).stdout, /^nothing to encode\n/);

  const server = startCatalogue(['serve', site, '--port', '0']);
  await until('it listens', () => /http:\S+/.test(server.said.stdout));
  const base = /http:\S+(?=\/)/.exec(server.said.stdout)![0];
  assert.equal(await (await fetch(`${base}/health.txt`)).text(), 'ok\n');
  server.child.kill('SIGTERM');
  assert.equal((await server.ended).code, 0);

  const withdrawn = await runCatalogue(['withdraw', 'a', '--purge'], env);
  assert.deepEqual([withdrawn.code, withdrawn.stdout], [0, 'a is withdrawn, and its files are removed\n']);
  const again = await runCatalogue(['build', manifest], env);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /^sluice catalogue: stream a: this id was withdrawn and cannot be used again/);
});

for (const [args, told] of [
  [['biuld'], /there is no command biuld/],
  [['build', 'a', 'b'], /b is one argument too many/],
  [['verify', '--purge'], /--purge does not belong to verify/],
  [['build', '--jobs', 'many'], /--jobs must be a whole number/],
  [['withdraw'], /needs the id/],
  [['headers', 'apache'], /needs one of nginx, caddy/],
  [['build', '--nonsense'], /nonsense/],
] as const) {
  test(`${args.join(' ')}: exit code 2 and a hint`, async () => {
    const { code, stderr } = await runCatalogue([...args]);
    assert.equal(code, 2);
    assert.match(stderr, told);
    assert.match(stderr, /--help/);
  });
}

test('--help names every command; a manifest that is not there is one line', async (t) => {
  const help = await runCatalogue(['--help']);
  assert.equal(help.code, 0);
  for (const command of ['build', 'verify', 'serve', 'push', 'withdraw', 'headers'])
    assert.match(help.stdout, new RegExp(`^  ${command}`, 'm'));
  const site = join(await makeFolder(t), 'site');
  const missing = await runCatalogue(['build', '/nowhere/catalogue.yaml', '--dir', site]);
  assert.equal(missing.code, 1);
  assert.equal(missing.stderr, 'sluice catalogue: /nowhere/catalogue.yaml does not exist\n');
});

test('headers prints rules with the folder of the site', async () => {
  for (const server of ['nginx', 'caddy']) {
    const { stdout, code } = await runCatalogue(['headers', server, '--dir', '/srv/films']);
    assert.equal(code, 0);
    assert.match(stdout, /root (\* )?\/srv\/films/);
  }
});
