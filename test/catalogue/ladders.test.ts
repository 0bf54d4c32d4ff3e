// The ladders that people start from, the sample's and the one in the documentation, pass Apple's rules for ladders; and
// what interlaced sources become.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import * as hlsParser from 'hls-parser';
import { sampleManifest } from '../../src/catalogue/sample.ts';
import { verifySite } from '../../src/catalogue/verify/verify.ts';
import { makeBuild, makeSource, writeManifest } from './fixture.ts';

const SLOWEST_VARIANT = 192_000;

async function documentedManifest(): Promise<string> {
  const page = await readFile(join(import.meta.dirname, '../../docs/catalogue.md'), 'utf8');
  return /```yaml\n([\s\S]*?)```/.exec(page)![1]!;
}

const renditionsOf = (manifest: string) => `${/renditions:\n(?: {2}- .*\n)+/.exec(manifest)![0]}`;

test('the ladders of the sample and of the documentation have a variant of 192 kbit/s or less', async (t) => {
  for (const manifest of [sampleManifest, await documentedManifest()]) {
    const build = await makeBuild(t);
    await makeSource(build.folder, 'a.mp4', {
      seconds: 4,
      size: '256x144',
      rate: '25',
      filters: 'noise=alls=40:allf=t',
    });
    await writeManifest(build.folder, ['{ id: a, title: A, source: a.mp4 }'], renditionsOf(manifest));
    await build.build();
    const text = await readFile(join(build.paths.site, 'media/a/hls/main.m3u8'), 'utf8');
    const { variants } = hlsParser.parse(text) as hlsParser.types.MasterPlaylist;
    const rates = variants.filter((variant) => !variant.isIFrameOnly).map((variant) => variant.bandwidth);
    assert.ok(Math.min(...rates) <= SLOWEST_VARIANT, String(rates));
  }
});

test('an interlaced source keeps its frame rate, or shows every field where the manifest asks for it', async (t) => {
  const build = await makeBuild(t);
  const output = ['-flags', '+ildct+ilme', '-x264opts', 'tff=1'];
  const fields = { size: '640x448', rate: '50', filters: 'interlace', output };
  await makeSource(build.folder, 'pal.mp4', fields);
  await makeSource(build.folder, 'ntsc.ts', { ...fields, rate: '60000/1001' });
  await makeSource(build.folder, 'film.mp4', { size: '640x448', rate: '24' });
  await writeManifest(
    build.folder,
    [
      '{ id: single, title: T, source: pal.mp4, progressive: [448p], hls: no }',
      '{ id: double, title: T, source: pal.mp4, progressive: [448p], deinterlace: double, hls: no }',
      '{ id: ntsc, title: T, source: ntsc.ts, deinterlace: double }',
      '{ id: film, title: T, source: film.mp4, deinterlace: double, hls: no, progressive: [448p] }',
    ],
    'renditions:\n  - { label: 448p, width: 640, height: 448, video_kbps: 400, audio_kbps: 32 }\n',
  );
  const { document } = await build.build({ jobs: 2 });
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
  const rates = Object.fromEntries(document.streams.map(({ id, fps }) => [id, fps]));
  assert.deepEqual(rates, { single: 25, double: 50, ntsc: 59.94, film: 24 });
});
