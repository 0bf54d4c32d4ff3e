import assert from 'node:assert/strict';
import { chmod, cp, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { BuildEvent } from '../../src/catalogue/build.ts';
import { findFfmpeg, makeRunnable } from '../../src/catalogue/media/ffmpeg.ts';
import { buildSample, needsSample } from '../../src/catalogue/sample.ts';
import { sitePathsOf } from '../../src/catalogue/site-paths.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import { bundledFfmpeg, execute, makeFolder, makeSource, runCli, systemFfmpeg, writeManifest } from './fixture.ts';

test('a fresh machine gets its sample streams from the ffmpeg that came with the install', async (t) => {
  const site = join(await makeFolder(t), 'catalogue');
  assert.ok(needsSample(site));
  const ffmpeg = await bundledFfmpeg();
  const stop = new AbortController();
  const report = (event: BuildEvent) => {
    if (event.kind === 'start') stop.abort();
  };
  await assert.rejects(buildSample(site, { ffmpeg, now: () => new Date(), signal: stop.signal, report }));
  // Stopped in the middle: there is an empty catalogue already, and the next start goes on.
  assert.deepEqual((await verifySite({ paths: sitePathsOf(site) })).faults, []);
  assert.ok(needsSample(site));
  const { document } = await buildSample(site, { ffmpeg, now: () => new Date() });
  assert.ok(!needsSample(site));
  assert.equal(document.streams.length, 3);
  assert.equal(document.streams.filter((stream) => stream.hls === null).length, 1);
  const { faults } = await verifySite({ paths: sitePathsOf(site) });
  assert.deepEqual(faults, []);
});

test('a program that npm unpacked without its mode is made runnable', async (t) => {
  const path = join(await makeFolder(t), 'ffmpeg');
  await cp((await bundledFfmpeg()).path, path);
  await chmod(path, 0o644);
  assert.equal(makeRunnable(path), path);
  assert.match((await execute(path, ['-version'])).stdout, /^ffmpeg version /);
});

test('FFMPEG comes before PATH, and a foreign file is opened by a current ffmpeg only', async (t) => {
  const folder = await makeFolder(t);
  await mkdir(join(folder, 'bin'));
  await symlink((await systemFfmpeg()).path, join(folder, 'bin/ffmpeg'));
  assert.equal((await findFfmpeg(undefined, join(folder, 'bin'))).path, join(folder, 'bin/ffmpeg'));
  const { path } = await systemFfmpeg();
  assert.equal((await findFfmpeg(path, join(folder, 'bin'))).path, path);
  await assert.rejects(findFfmpeg('/nowhere/ffmpeg', ''), /\/nowhere\/ffmpeg cannot be run/);
  await assert.rejects(findFfmpeg(undefined, ''), /^\S*Error: ffmpeg was not found; install it with: \S+ .*ffmpeg/);
  const old = await bundledFfmpeg();
  await assert.rejects(findFfmpeg(old.path, ''), /too old to open foreign files safely; install a current one with: /);
  // A build with nothing else stops with that one line, before it opens anything.
  await makeSource(folder, 'a.mp4');
  const manifest = await writeManifest(folder, ['{ id: a, title: A, source: a.mp4, progressive: [36p] }']);
  const args = ['build', manifest, '--dir', join(folder, 'site')];
  const { code, stderr } = await runCli(args, { env: { PATH: '', FFMPEG: '' } }).ended;
  assert.equal(code, 1);
  assert.match(stderr, /^sluice catalogue: ffmpeg was not found; install it with: [^\n]*\n$/);
});
