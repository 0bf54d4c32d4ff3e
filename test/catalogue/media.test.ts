// What the encoder makes of real sources, checked by programs that are not ours: ffmpeg, ffprobe, sha256sum, hls-parser.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import * as hlsParser from 'hls-parser';
import { listFiles } from '../../src/catalogue/files.ts';
import { probeSource } from '../../src/catalogue/media/probe-source.ts';
import { openSource } from '../../src/catalogue/media/source-file.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import {
  encoders,
  execute,
  makeBuild,
  makeSource,
  quickCodec,
  systemFfmpeg,
  type TestBuild,
  writeManifest,
  writeSource,
} from './fixture.ts';
import { describeFiles } from './look.ts';

hlsParser.setOptions({ strictMode: true, silent: true, allowClosedCaptionsNone: true });

const renditions = `renditions:
  - { label: 90p, width: 160, height: 90, video_kbps: 150, audio_kbps: 32 }
  - { label: 480p, width: 854, height: 480, video_kbps: 600, audio_kbps: 64 }
`;

async function keyTimes(path: string): Promise<string[]> {
  const args = [
    '-v',
    'error',
    '-of',
    'csv=p=0',
    '-show_entries',
    'packet=pts_time,flags',
    '-select_streams',
    'v',
    path,
  ];
  const { stdout } = await execute('ffprobe', args);
  const keys = [...stdout.matchAll(/^([\d.]+),K/gm)].map(([, time]) => Number(time));
  return keys.map((time) => (time - keys[0]!).toFixed(2));
}

/** Everything that must hold for any site. */
async function checkSite({ paths }: TestBuild): Promise<void> {
  const { faults } = await verifySite({ paths, decoder: await systemFfmpeg() });
  assert.deepEqual(faults, []);
  await execute('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: join(paths.site, 'media') });
  const media = (await listFiles(join(paths.site, 'media'))).map((name) => join(paths.site, 'media', name));
  for (const path of media) if (path.endsWith('.m3u8')) hlsParser.parse(await readFile(path, 'utf8'));
  const playable = media.filter((path) => /\.(mp4|m3u8)$/.test(path) && !path.endsWith('init.mp4'));
  for (const [i, streams] of (await describeFiles(playable)).entries()) assert.ok(streams.length > 0, playable[i]);
}

for (const [which, find] of encoders) {
  describe(which, () => {
    test('sources of every kind become streams that players can rely on', async (t) => {
      const build = await makeBuild(t, await find());
      const { folder } = build;
      const interlaced = ['-flags', '+ildct+ilme', '-x264opts', 'tff=1'];
      await makeSource(folder, 'fast.mp4', { seconds: 4.2, size: '480x480', rate: '60', output: quickCodec });
      await makeSource(folder, 'fields.mp4', { size: '320x180', rate: '25', filters: 'interlace', output: interlaced });
      await makeSource(folder, 'upright0.mp4', { size: '320x180', rate: '25' });
      const turned = ['-c', 'copy', '-metadata:s:v', 'rotate=90'];
      await writeSource(join(folder, 'upright.mp4'), ['-i', join(folder, 'upright0.mp4'), ...turned]);
      await makeSource(folder, 'odd.mkv', {
        size: '161x91',
        rate: '24000/1001',
        silent: true,
        output: ['-pix_fmt', 'yuv444p'],
      });
      const uneven = "setpts='if(mod(N,3),N+0.6,N)/25/TB'";
      await makeSource(folder, 'uneven.mkv', {
        size: '160x90',
        rate: '25',
        filters: uneven,
        output: ['-vsync', 'vfr'],
      });
      await writeManifest(
        folder,
        [
          '{ id: fast, title: Fast, source: fast.mp4, progressive: [90p, 480p] }',
          '{ id: fields, title: Interlaced, source: fields.mp4, progressive: [90p], hls: no }',
          '{ id: upright, title: Upright, source: upright.mp4, progressive: [90p], hls: no }',
          '{ id: odd, title: Odd and silent, source: odd.mkv, progressive: [90p] }',
          '{ id: uneven, title: Variable rate, source: uneven.mkv, progressive: [90p], hls: no }',
        ],
        renditions,
      );
      const { document } = await build.build();
      await checkSite(build);
      const media = (path: string) => join(build.paths.site, 'media', path);
      const streamOf = (id: string) => document.streams.find((stream) => stream.id === id)!;

      assert.equal(streamOf('fast').fps, 60);
      assert.ok(Math.abs(streamOf('fast').duration_s - 4.2) < 0.05);
      const names = ['fast/480p.mp4', 'fast/90p.mp4', 'upright/90p.mp4', 'odd/90p.mp4'];
      const [large, small, upright, odd] = await describeFiles(names.map(media));
      assert.match(large![0]!, /Video: h264 \(High\).*, 60 fps,/);
      assert.match(small![0]!, /Video: h264 \(High\).*, 30 fps,/);
      assert.match(upright![0]!, /Video: .*, 90x160[ ,]/);
      assert.equal(odd!.length, 1);
      assert.match(odd![0]!, /Video: .*, 160x90[ ,]/);
      const keys = await keyTimes(media('fast/hls/v-480p.mp4'));
      assert.deepEqual(keys, ['0.00', '2.00', '4.00']);
      assert.deepEqual(await keyTimes(media('fast/hls/v-90p.mp4')), keys);

      assert.equal(streamOf('odd').fps, 23.976);
      assert.doesNotMatch(await readFile(media('odd/hls/main.m3u8'), 'utf8'), /AUDIO/);
      assert.equal(streamOf('uneven').fps, 25);
      const { file, ...source } = await openSource({ path: join(folder, 'fields.mp4'), name: 'fields.mp4' });
      t.after(() => file.close());
      assert.equal((await probeSource(await find(), source)).interlaced, true);
    });
  });
}

test('segmented HLS has a file for each segment, and says the same', async (t) => {
  const build = await makeBuild(t);
  await makeSource(build.folder, 'a.mp4', { seconds: 8, size: '160x90', rate: '25', output: quickCodec });
  await writeManifest(build.folder, ['{ id: a, title: A, source: a.mp4 }'], renditions);
  await build.build({ hlsLayout: 'segments' });
  await checkSite(build);
  const names = await listFiles(join(build.paths.site, 'media/a/hls/v-90p'));
  assert.deepEqual(names, ['00001.m4s', '00002.m4s', 'init.mp4']);
  const playlist = await readFile(join(build.paths.site, 'media/a/hls/v-90p.m3u8'), 'utf8');
  assert.doesNotMatch(playlist, /BYTERANGE/);
});

test('a peak stays below twice the average for ordinary pictures', async (t) => {
  const build = await makeBuild(t);
  await makeSource(build.folder, 'a.mp4', {
    seconds: 14,
    size: '160x90',
    rate: '25',
    filters: 'noise=alls=20:allf=t',
    output: quickCodec,
  });
  await writeManifest(build.folder, ['{ id: a, title: A, source: a.mp4 }'], renditions);
  await build.build();
  const { notes, faults } = await verifySite({ paths: build.paths });
  assert.deepEqual([...notes, ...faults], []);
});
