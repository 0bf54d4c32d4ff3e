import assert from 'node:assert/strict';
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { findFfmpeg } from '../../src/catalogue/media/ffmpeg.ts';
import { needsSample, placeSample } from '../../src/catalogue/sample.ts';
import { DOCUMENT_PATH, sitePathsOf } from '../../src/catalogue/site-paths.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import { makeFolder, makeSource, runCatalogue, systemFfmpeg, writeManifest } from './fixture.ts';

const now = () => new Date('2026-01-02T03:04:05Z');

test('a fresh machine gets its sample streams without ffmpeg, also after a crash in the middle', async (t) => {
  const site = join(await makeFolder(t), 'catalogue');
  const paths = sitePathsOf(site);
  assert.ok(needsSample(site));
  await placeSample(site, now);
  assert.ok(!needsSample(site));
  const { streams, updated } = JSON.parse(await readFile(join(site, DOCUMENT_PATH), 'utf8'));
  assert.equal(updated, '2026-01-02');
  assert.deepEqual(
    streams.map((stream: { id: string; hls: string | null }) => [stream.id, stream.hls !== null]),
    [
      ['sample-cells', true],
      ['sample-set', true],
      ['sample-card', false],
    ],
  );
  assert.deepEqual((await verifySite({ paths, decoder: await systemFfmpeg() })).faults, []);
  // As after a crash between the ledger and the document.
  await rm(join(site, 'api'), { recursive: true });
  await placeSample(site, now);
  const { faults, notes } = await verifySite({ paths });
  assert.deepEqual([...faults, ...notes], []);
  assert.equal((await readFile(paths.ledger, 'utf8')).trim().split('\n').length, 3, 'nothing is in the ledger twice');
});

test('samples stay away from a site whose ledger knows other streams', async (t) => {
  const folder = await makeFolder(t);
  const paths = sitePathsOf(join(folder, 'site'));
  await makeSource(folder, 'a.mp4');
  const manifest = await writeManifest(folder, ['{ id: a, title: A, source: a.mp4, progressive: [36p], hls: no }']);
  assert.equal((await runCatalogue(['build', manifest, '--dir', paths.site])).code, 0);
  await rm(paths.site, { recursive: true });
  await placeSample(paths.site, now);
  assert.ok(needsSample(paths.site));
});

test('FFMPEG comes before PATH, and a foreign file is opened by a current ffmpeg only', async (t) => {
  const folder = await makeFolder(t);
  await mkdir(join(folder, 'bin'));
  const { path } = await systemFfmpeg();
  await symlink(path, join(folder, 'bin/ffmpeg'));
  assert.equal((await findFfmpeg(undefined, join(folder, 'bin'))).path, join(folder, 'bin/ffmpeg'));
  assert.equal((await findFfmpeg(path, join(folder, 'bin'))).path, path);
  await assert.rejects(findFfmpeg('/nowhere/ffmpeg', ''), /\/nowhere\/ffmpeg cannot be run/);
  await assert.rejects(findFfmpeg(undefined, ''), /^\S*Error: ffmpeg was not found; install it with: \S+ .*ffmpeg/);
  const old = join(folder, 'old-ffmpeg');
  const versions = 'ffmpeg version 4.4.5\nlibavcodec     58.134.100 / 58.134.100';
  await writeFile(old, `#!/bin/sh\necho '${versions}'\n`, { mode: 0o755 });
  await assert.rejects(findFfmpeg(old, ''), /too old to open foreign files safely; install a current one with: /);
  // A build with nothing else stops with that one line, before it opens anything.
  await makeSource(folder, 'a.mp4');
  const manifest = await writeManifest(folder, ['{ id: a, title: A, source: a.mp4, progressive: [36p] }']);
  const args = ['build', manifest, '--dir', join(folder, 'site')];
  const { code, stderr } = await runCatalogue(args, { PATH: '', FFMPEG: '' });
  assert.equal(code, 1);
  assert.match(stderr, /^sluice catalogue: ffmpeg was not found; install it with: [^\n]*\n$/);
});
