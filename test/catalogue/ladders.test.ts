// The ladders that people start from, the sample's and the one in the documentation, pass Apple's rules for ladders; and
// what interlaced sources become.

import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import * as hlsParser from 'hls-parser';
import { sampleRenditions } from '../../scripts/sample-streams.ts';
import { listFiles } from '../../src/catalogue/files.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import { type Cleanup, makeBuild, makeSource, quickCodec, type SourceOptions, writeManifest } from './fixture.ts';
import { ended, launchPlayer, openPlayer, play, ready } from './player.ts';
import { startOrigin } from './servers.ts';

const sampleManifest = `renditions:\n${sampleRenditions.map((each) => `  - ${JSON.stringify(each)}\n`).join('')}streams:\n`;
const SLOWEST_VARIANT = 192_000;

async function documentedManifest(): Promise<string> {
  const page = await readFile(join(import.meta.dirname, '../../docs/catalogue.md'), 'utf8');
  return /```yaml\n([\s\S]*?)```/.exec(page)![1]!;
}

const renditionsOf = (manifest: string) => `${/renditions:\n(?: {2}- .*\n)+/.exec(manifest)![0]}`;

async function buildLadder(t: Cleanup, manifest: string, source: SourceOptions) {
  const build = await makeBuild(t);
  await makeSource(build.folder, 'a.mp4', source);
  await writeManifest(build.folder, ['{ id: a, title: A, source: a.mp4 }'], renditionsOf(manifest));
  await build.build({ jobs: 2 });
  return build;
}

test('the ladders of the sample and of the documentation have a variant of 192 kbit/s or less, also for a short clip that needs more', async (t) => {
  for (const manifest of [sampleManifest, await documentedManifest()]) {
    const build = await buildLadder(t, manifest, {
      seconds: 4,
      size: '256x144',
      rate: '25',
      filters: 'noise=alls=40:allf=t',
    });
    const text = await readFile(join(build.paths.site, 'media/a/hls/main.m3u8'), 'utf8');
    const { variants } = hlsParser.parse(text) as hlsParser.types.MasterPlaylist;
    const rates = variants.filter((variant) => !variant.isIFrameOnly).map((variant) => variant.bandwidth);
    assert.ok(Math.min(...rates) <= SLOWEST_VARIANT, String(rates));
    const { size } = await stat(join(build.paths.site, 'media/a/hls/v-144p.mp4'));
    const kbps = (size * 8) / 4 / 1000;
    assert.ok(kbps > 76 && kbps < 80 * 1.15, `${kbps} kb/s`);
  }
});

test('an interlaced source keeps its frame rate, or shows every field where the manifest asks for it', async (t) => {
  const build = await makeBuild(t);
  const output = ['-flags', '+ildct+ilme', '-x264opts', 'tff=1'];
  const fields = { seconds: 0.6, size: '448x448', rate: '50', filters: 'interlace', output };
  await makeSource(build.folder, 'pal.mp4', fields);
  await makeSource(build.folder, 'ntsc.ts', { ...fields, rate: '60000/1001' });
  await makeSource(build.folder, 'film.mp4', { seconds: 0.5, size: '448x448', rate: '24' });
  await writeManifest(
    build.folder,
    [
      '{ id: single, title: T, source: pal.mp4, progressive: [448p], hls: no }',
      '{ id: double, title: T, source: pal.mp4, progressive: [448p], deinterlace: double, hls: no }',
      '{ id: ntsc, title: T, source: ntsc.ts, deinterlace: double }',
      '{ id: film, title: T, source: film.mp4, deinterlace: double, hls: no, progressive: [448p] }',
    ],
    'renditions:\n  - { label: 448p, width: 448, height: 448, video_kbps: 400, audio_kbps: 32 }\n',
  );
  const { document } = await build.build({ jobs: 2 });
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
  const rates = Object.fromEntries(document.streams.map(({ id, fps }) => [id, fps]));
  assert.deepEqual(rates, { single: 25, double: 50, ntsc: 59.94, film: 24 });
});

test('a rung that takes nearly as many bits as the next larger one is left out, with the sound that only it needs', async (t) => {
  const build = await makeBuild(t);
  await makeSource(build.folder, 'busy.mp4', { seconds: 2, size: '160x90' });
  await makeSource(build.folder, 'plain.mp4', { seconds: 2, size: '160x90', filters: 'drawbox=t=fill:color=gray' });
  await writeManifest(
    build.folder,
    ['busy', 'plain'].map((id) => `{ id: ${id}, title: T, source: ${id}.mp4, progressive: [36p] }`),
  );
  const { document } = await build.build();
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
  const tracks = async (id: string) => {
    const names = await listFiles(join(build.paths.site, 'media', id, 'hls'));
    return names.filter((name) => /^[av]-.*\.mp4$/.test(name));
  };
  assert.deepEqual(await tracks('busy'), ['a-32.mp4', 'a-48.mp4', 'v-36p.mp4', 'v-90p.mp4']);
  assert.deepEqual(await tracks('plain'), ['a-48.mp4', 'v-90p.mp4']);
  assert.deepEqual(Object.keys(document.streams[1]!.progressive), ['36p'], 'a file is there if it is asked for');
});

/** The master playlist with one of its variants. */
function onlyVariant(master: string, index: number): string {
  let variants = 0;
  return master.replace(/^#EXT-X-STREAM-INF:.*\n.*\n/gm, (variant) => (variants++ === index ? variant : ''));
}

test('every rung of both ladders plays to its end in a browser, also after a change of quality', async (t) => {
  const browser = await launchPlayer();
  t.after(() => browser.close());
  for (const [manifest, size, rungs] of [
    [sampleManifest, '960x540', [256, 480, 960]],
    [await documentedManifest(), '1920x1080', [256, 640, 1280, 1920]],
  ] as const) {
    const build = await buildLadder(t, manifest, { seconds: 2, size, output: quickCodec });
    const { page, wrong } = await openPlayer(browser, t, `${await startOrigin(t, build.paths.site)}/#/a`);
    await ready(page);
    await page.click('#settings-open');
    await page.selectOption('#quality', { index: rungs.length });
    await play(page);
    await ended(page);
    const played: number[] = [];
    for (const index of rungs.keys()) {
      await page.route('**/main.m3u8', async (route) => {
        const master = await route.fetch();
        await route.fulfill({ response: master, body: onlyVariant(await master.text(), index) });
      });
      await page.reload();
      await ready(page);
      await play(page);
      await ended(page);
      played.push(await page.evaluate(() => document.querySelector('video')!.videoWidth));
      await page.unrouteAll();
    }
    assert.deepEqual(
      played.sort((a, b) => a - b),
      rungs,
    );
    assert.deepEqual(wrong, []);
  }
});
