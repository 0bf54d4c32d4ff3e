// Whatever the colours of a source are, what is published is BT.709 and says so; measured in the decoded pictures.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { toBt709 } from '../../src/catalogue/media/colour.ts';
import { describeInput } from '../../src/catalogue/media/describe-input.ts';
import { bundledFfmpeg, execute, makeBuild, makeFolder, systemFfmpeg, writeManifest, writeSource } from './fixture.ts';

const SIZE = '160x90';

/** A field of one colour, which stands as the same RGB in every source. */
async function makeField(folder: string, name: string, filters: string, output: string[]): Promise<void> {
  const rgb = `color=c=0xc03020:s=${SIZE}:r=25:d=0.4,format=gbrp`;
  // Builds of 2018 do not tag everything they write.
  await writeSource(join(folder, name), ['-f', 'lavfi', '-i', `${rgb},${filters}`, ...output], systemFfmpeg);
}

/** Red, green and blue in the middle of the picture, read with the matrix that the file must be read with. */
async function middle(path: string, matrix: 'bt709' | 'bt601'): Promise<number[]> {
  const filter = `scale=in_color_matrix=${matrix},format=gbrp,format=rgb24,crop=2:2`;
  const args = ['-v', 'error', '-i', path, '-frames:v', '1', '-vf', filter, '-f', 'rawvideo', '-'];
  const { stdout } = await execute((await bundledFfmpeg()).path, args, { encoding: 'buffer' });
  return [...(stdout as unknown as Buffer).subarray(0, 3)];
}

async function tags(path: string): Promise<string> {
  const fields = 'stream=color_range,color_space,color_transfer,color_primaries';
  const args = ['-v', 'error', '-select_streams', 'v', '-show_entries', fields, '-of', 'csv=p=0', path];
  return (await execute('ffprobe', args)).stdout.trim();
}

const near = (found: number[], wanted: number[], what: string) =>
  assert.ok(
    found.every((value, i) => Math.abs(value - wanted[i]!) <= 12),
    `${what}: ${found} instead of ${wanted}`,
  );

const x264 = (...more: string[]) => ['-c:v', 'libx264', '-qp', '4', ...more];
const hdrTags = ['-color_primaries', 'bt2020', '-colorspace', 'bt2020nc'];
/** The same red in BT.2020, white at 203 nits, as ten-bit codes of luma and chroma. */
const hdrReds = { smpte2084: [395, 467, 575], 'arib-std-b67': [353, 440, 641] };
const toHdr = ([y, u, v]: number[]) => `format=yuv420p10le,lutyuv=y=${y}:u=${u}:v=${v}`;

for (const [which, find] of [
  ['the system’s ffmpeg', systemFfmpeg],
  ['the ffmpeg that comes with the install', bundledFfmpeg],
] as const) {
  describe(which, () => {
    test('sources of every kind are published as BT.709, and so are their pictures', async (t) => {
      const build = await makeBuild(t, await find());
      const { folder } = build;
      await makeField(folder, 'hd.mp4', 'scale=out_color_matrix=bt709,format=yuv420p', x264('-colorspace', 'bt709'));
      await makeField(
        folder,
        'sd.mp4',
        'scale=out_color_matrix=bt601,format=yuv420p',
        x264('-colorspace', 'smpte170m'),
      );
      await makeField(folder, 'full.mp4', 'scale=out_color_matrix=bt709:out_range=pc,format=yuv420p', [
        ...x264('-colorspace', 'bt709', '-color_range', 'pc'),
      ]);
      await makeField(folder, 'rgb.mkv', 'null', ['-c:v', 'ffv1']);
      const ids = { hd: 'hd.mp4', sd: 'sd.mp4', full: 'full.mp4', rgb: 'rgb.mkv' };
      await writeManifest(
        folder,
        Object.entries(ids).map(([id, name]) => `{ id: ${id}, title: T, source: ${name}, progressive: [90p] }`),
      );
      await build.build();
      for (const id of Object.keys(ids)) {
        const media = (name: string) => join(build.paths.site, 'media', id, name);
        for (const name of ['90p.mp4', 'hls/v-90p.mp4', 'hls/iframes.mp4'])
          assert.equal(await tags(media(name)), 'tv,bt709,bt709,bt709', `${id}/${name}`);
        near(await middle(media('90p.mp4'), 'bt709'), [0xc0, 0x30, 0x20], `${id}/90p.mp4`);
        near(await middle(media('poster.jpg'), 'bt601'), [0xc0, 0x30, 0x20], `${id}/poster.jpg`);
        near(await middle(media('thumbs-001.jpg'), 'bt601'), [0xc0, 0x30, 0x20], `${id}/thumbs-001.jpg`);
      }
    });

    test('HDR10 and HLG are mapped to SDR', async (t) => {
      const build = await makeBuild(t, await find());
      const { folder } = build;
      const hevc = ['-c:v', 'libx265', '-x265-params', 'log-level=none', ...hdrTags];
      await makeField(folder, 'pq.mp4', toHdr(hdrReds.smpte2084), [...hevc, '-color_trc', 'smpte2084']);
      await makeField(folder, 'hlg.mp4', toHdr(hdrReds['arib-std-b67']), [...hevc, '-color_trc', 'arib-std-b67']);
      await writeManifest(folder, [
        '{ id: pq, title: T, source: pq.mp4, progressive: [90p] }',
        '{ id: hlg, title: T, source: hlg.mp4, progressive: [90p] }',
      ]);
      await build.build();
      for (const id of ['pq', 'hlg']) {
        const file = join(build.paths.site, 'media', id, '90p.mp4');
        assert.equal(await tags(file), 'tv,bt709,bt709,bt709');
        const [red, green, blue] = (await middle(file, 'bt709')) as [number, number, number];
        // A tone curve changes the brightness, not which colour it is: still a strong red, neither grey nor washed out.
        assert.ok(red > 90 && red > 1.8 * green && red > 1.8 * blue, `${id}: ${red} ${green} ${blue}`);
        assert.match(await readFile(join(build.paths.site, 'media', id, 'hls/main.m3u8'), 'utf8'), /VIDEO-RANGE=SDR/);
      }
    });
  });
}

test('HDR is refused in one line where ffmpeg cannot map it', async (t) => {
  const { path } = await systemFfmpeg();
  const lacking = join(await makeFolder(t), 'ffmpeg');
  await writeFile(
    lacking,
    `#!/bin/sh\ncase "$*" in *-filters*) ${path} "$@" | grep -v zscale;; *) exec ${path} "$@";; esac\n`,
    {
      mode: 0o755,
    },
  );
  const build = await makeBuild(t, { path: lacking, version: 'without zscale' });
  const hevc = ['-c:v', 'libx265', '-x265-params', 'log-level=none', ...hdrTags, '-color_trc', 'smpte2084'];
  await makeField(build.folder, 'a.mp4', 'format=yuv420p10le', hevc);
  await writeManifest(build.folder, ['{ id: a, title: A, source: a.mp4, progressive: [90p] }']);
  await assert.rejects(build.build(), (error: { lines: string[] }) => {
    assert.equal(error.lines.length, 1);
    assert.match(
      error.lines[0]!,
      /^stream a: .*a\.mp4 is HDR \(smpte2084\), and this ffmpeg lacks zscale to convert it/,
    );
    return true;
  });
});

test('colours are read from what ffmpeg says of a stream, and the rest is assumed as players do', () => {
  const colourOf = (pixels: string) =>
    describeInput(`  Stream #0:0: Video: hevc (Main 10) (hev1 / 0x31766568), ${pixels}, 320x180, 25 fps (default)\n`)
      .colour;
  assert.deepEqual(colourOf('yuv420p10le(tv, bt2020nc/bt2020/smpte2084)').transfer, 'smpte2084');
  assert.deepEqual(colourOf('yuv420p(tv, bt709, progressive)').matrix, 'bt709');
  assert.deepEqual(colourOf('yuvj420p(pc, bt470bg/unknown/unknown)').full, true);
  assert.deepEqual(colourOf('yuv420p(top first)').matrix, 'unknown');
  const head = (pixels: string, height: number) => toBt709(colourOf(pixels), height)[0]!;
  assert.match(head('yuv420p', 480), /in_color_matrix=bt601/);
  assert.match(head('yuv420p', 720), /^setparams/);
  assert.match(head('yuv420p(tv, smpte170m)', 1080), /in_color_matrix=bt601/);
  assert.match(head('yuv420p10le(tv, bt2020nc/bt2020/bt709)', 1080), /^zscale=.*pin=2020/);
});
