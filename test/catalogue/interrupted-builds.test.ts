// A disk that fills, two file systems, Ctrl-C: one line each, before work is lost, and nothing is left running.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, readlink, rm, rmdir, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import { until } from '../helpers/wait.ts';
import {
  execute,
  freshEncoders,
  makeBuild,
  makeFolder,
  makeSlowEncoder,
  makeSource,
  quickCodec,
  runCatalogue,
  startCatalogue,
  systemFfmpeg,
  writeManifest,
} from './fixture.ts';

const stream = '{ id: a, title: A, source: a.mp4, progressive: [36p] }';
const noise = 'noise=alls=80:allf=t';

/** A file system of its own in memory, or null where this user may not mount one. */
async function mountSmall(t: { after(undo: () => unknown): void }, kilobytes: number): Promise<string | null> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-small-'));
  const mounted = await execute('mount', ['-t', 'tmpfs', '-o', `size=${kilobytes}k`, 'tmpfs', folder]).catch(
    () => null,
  );
  t.after(async () => {
    if (mounted !== null) await execute('umount', ['-l', folder]);
    await rmdir(folder);
  });
  return mounted === null ? null : folder;
}

for (const [which, find] of freshEncoders) {
  test(`a disk that fills while ${which} encodes ends the build in one line, and the site is as it was`, async (t) => {
    const small = await mountSmall(t, 160);
    if (small === null) return t.skip('needs the right to mount');
    const folder = await makeFolder(t);
    const film = { seconds: 2, size: '160x90', rate: '25', filters: noise, output: quickCodec };
    await makeSource(folder, 'a.mp4', film);
    const ladder = 'renditions:\n  - { label: 36p, width: 160, height: 90, video_kbps: 900, audio_kbps: 64 }\n';
    const manifest = await writeManifest(folder, [stream], ladder);
    const site = join(small, 'site');
    const env = { FFMPEG: (await find()).path };
    const { code, stderr } = await runCatalogue(['build', manifest, '--dir', site], env);
    assert.equal(code, 1);
    assert.equal(
      stderr,
      'sluice catalogue: the disk is full; what is published is whole, and the next build goes on\n',
    );
    assert.ok(!existsSync(join(site, 'api')));
    assert.deepEqual(await readdir(`${site}.state/work`), [], 'what was half made is gone, and its space is free');
  });
}

test('a site on another file system than its state is told before anything is encoded', async (t) => {
  const small = await mountSmall(t, 4096);
  if (small === null) return t.skip('needs the right to mount');
  const build = await makeBuild(t);
  await makeSource(build.folder, 'a.mp4');
  await writeManifest(build.folder, [stream]);
  await rm(build.paths.site, { recursive: true });
  await symlink(small, build.paths.site);
  await assert.rejects(build.build(), (error: { lines: string[] }) => {
    const { staging, site } = build.paths;
    const line = `${site}/media and ${staging} are on different file systems; put the site and its state on one`;
    assert.deepEqual(error.lines, [line]);
    return true;
  });
  assert.ok(!build.events.some((event) => event.kind === 'start'));
  await rm(build.paths.site);
  await build.build();
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
});

/** An encoder that tells its version and does nothing else. */
async function makeRefusingEncoder(folder: string): Promise<string> {
  const path = join(folder, 'refusing-ffmpeg');
  const { path: real } = await systemFfmpeg();
  const script = `#!/bin/sh\ncase "$*" in *-version*) exec "${real}" "$@";; esac\necho 'not now' >&2\nexit 1\n`;
  await writeFile(path, script, { mode: 0o755 });
  return path;
}

/** Programs that run in a folder. */
async function runningIn(folder: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const folders = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => '')));
  return folders.filter((each) => each.startsWith(folder));
}

test('Ctrl-C ends a build and its ffmpeg at once, and what is encoded by then is kept', async (t) => {
  const folder = await makeFolder(t);
  await makeSource(folder, 'a.mp4', { seconds: 0.5 });
  await makeSource(folder, 'b.mp4', { seconds: 20 });
  const film = '{ id: b, title: B, source: b.mp4, progressive: [36p] }';
  const manifest = await writeManifest(folder, [stream, film]);
  const site = join(folder, 'site');
  const words = ['build', manifest, '--dir', site, '--jobs', '1'];
  const run = startCatalogue(words, { env: { FFMPEG: await makeSlowEncoder(folder) } });
  await until('the second encode', async () => /b: encoding/.test(run.said.stdout));
  await until('its ffmpeg', async () => (await runningIn(`${site}.state`)).length > 0);
  const startedMs = performance.now();
  run.child.kill('SIGINT');
  const { code, stderr } = await run.ended;
  assert.equal(code, 130);
  assert.equal(
    stderr,
    'sluice catalogue: interrupted; the site is as it was, what is encoded is kept, and the next build goes on from there\n',
  );
  assert.ok(performance.now() - startedMs < 10_000);
  assert.deepEqual(await runningIn(`${site}.state`), []);
  // Only one that was not kept would need an encoder.
  const shorter = await writeManifest(folder, [stream]);
  await utimes(shorter, Date.now() / 1000 - 60, Date.now() / 1000 - 60);
  const next = await runCatalogue(words, { FFMPEG: await makeRefusingEncoder(folder) });
  assert.equal(next.code, 0, next.stderr);
  assert.match(next.stdout, /published a\n/);
});

test('a build that was stopped between its files and its ledger is healed, though no encode gives the same bytes twice', async (t) => {
  const build = await makeBuild(t, await systemFfmpeg());
  await makeSource(build.folder, 'a.mp4', { seconds: 2, size: '160x90', filters: noise, output: quickCodec });
  await writeManifest(build.folder, [stream]);
  await build.build();
  // As after a crash: media is in place, nothing names it, and what was staged is lost.
  await rm(build.paths.ledger);
  await rm(join(build.paths.site, 'api'), { recursive: true });
  await rm(join(build.paths.site, 'media/SHA256SUMS'));
  assert.deepEqual((await build.build()).encoded, ['a']);
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
  for (const page of ['catalogue.md', 'decisions/catalogue-encoding.md']) {
    const text = await readFile(join(import.meta.dirname, '../../docs', page), 'utf8');
    assert.doesNotMatch(text, /give the same bytes|reproducible/);
  }
});
