// Whatever the colours of a source are, what is published is BT.709 and says so; measured in the decoded pictures.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { listFiles } from '../../src/catalogue/files.ts';
import { toBt709 } from '../../src/catalogue/media/colour.ts';
import { describeInput } from '../../src/catalogue/media/describe-input.ts';
import { type Cleanup, encoders, makeBuild, makeFolder, systemFfmpeg, writeManifest, writeSource } from './fixture.ts';
import { decodeFiles, describeFiles } from './look.ts';

/** Three strips: a light grey, a dark one and a red. The same RGB in every source. */
const strips = [
  [180, 180, 180],
  [71, 71, 71],
  [192, 48, 32],
] as const;
const SMALL = [96, 48];
const HD = [1278, 720];

async function makeStrips(folder: string, name: string, filters: string, output: string[], [width, height] = SMALL) {
  const hex = (rgb: readonly number[]) => rgb.map((value) => value.toString(16).padStart(2, '0')).join('');
  const parts = strips.map((rgb, i) => `color=c=0x${hex(rgb)}:s=${width! / 3}x${height}:r=25:d=0.2,format=gbrp[c${i}]`);
  const graph = `${parts.join(';')};[c0][c1][c2]hstack=3,${filters}`;
  await writeSource(join(folder, name), ['-filter_complex', graph, ...output]);
}

interface Shown {
  path: string;
  /** Range, matrix, primaries and transfer, as ffmpeg says them. */
  tags: string;
  /** Red, green and blue of each strip, without a conversion by ffmpeg. */
  colours: number[][];
}

const kindOf = (path: string) => (path.endsWith('.jpg') ? 'jpeg' : 'video');

/** The first picture of each file. */
async function look(t: Cleanup, paths: string[]): Promise<Shown[]> {
  const described = await describeFiles(paths);
  const pixels = { jpeg: 'yuvj420p', video: 'yuv420p' };
  const pictures = await decodeFiles(
    t,
    paths.map((path, i) => {
      const output = ['-map', `${i}:v`, '-frames:v', '1', '-pix_fmt', pixels[kindOf(path)], '-f', 'rawvideo'];
      return { path, output };
    }),
  );
  return paths.map((path, i) => {
    const video = described[i]!.find((line) => line.includes('Video:'))!;
    const [, width, height] = /, (\d+)x(\d+)/.exec(video)!.map(Number) as [number, number, number];
    const tags = /yuvj?420p\(([^)]*?)(?:, progressive)?\)/.exec(video)?.[1] ?? '';
    return { path, tags, colours: coloursIn(pictures[i]!, width, height, kindOf(path)) };
  });
}

function coloursIn(bytes: Buffer, width: number, height: number, kind: 'video' | 'jpeg'): number[][] {
  const [half, luma] = [width / 2, width * height];
  const [red, blue] = kind === 'jpeg' ? [0.299, 0.114] : [0.2126, 0.0722];
  return strips.map((_, i) => {
    const [x, y] = [Math.floor(((i + 0.5) * width) / 3), Math.floor(height / 2)];
    const chroma = (y >> 1) * half + (x >> 1);
    const codes = [bytes[y * width + x]!, bytes[luma + chroma]!, bytes[luma + (luma >> 2) + chroma]!] as const;
    const light = kind === 'jpeg' ? codes[0] / 255 : (codes[0] - 16) / 219;
    const [cb, cr] = [codes[1], codes[2]].map((code) => (code - 128) / (kind === 'jpeg' ? 255 : 224)) as [
      number,
      number,
    ];
    const r = light + 2 * (1 - red) * cr;
    const b = light + 2 * (1 - blue) * cb;
    const g = (light - red * r - blue * b) / (1 - red - blue);
    return [r, g, b].map((value) => Math.round(value * 255));
  });
}

function near(found: number[][], within: number, what: string): void {
  const off = Math.max(...found.flatMap((rgb, i) => rgb.map((value, j) => Math.abs(value - strips[i]![j]!))));
  assert.ok(off <= within, `${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(strips)}`);
}

const x264 = (...more: string[]) => ['-c:v', 'libx264', '-qp', '4', ...more];
const tagged = (primaries: string, transfer: string, matrix: string, range: string) =>
  x264('-color_primaries', primaries, '-color_trc', transfer, '-colorspace', matrix, '-color_range', range);
const hdrTags = ['-color_primaries', 'bt2020', '-colorspace', 'bt2020nc'];

/** Ten-bit codes of HDR video that shows what a BT.709 display shows for this RGB, with white at 203 nits. */
function hdrCodes(rgb: readonly number[], transfer: string): number[] {
  const [r, g, b] = rgb.map((value) => 203 * (value / 255) ** 2.4) as [number, number, number];
  const wide = [
    0.6274 * r + 0.3293 * g + 0.0433 * b,
    0.0691 * r + 0.9195 * g + 0.0114 * b,
    0.0164 * r + 0.088 * g + 0.8956 * b,
  ];
  const luma = ([red, green, blue]: number[]) => 0.2627 * red! + 0.678 * green! + 0.0593 * blue!;
  const pq = (nits: number) => {
    const power = (nits / 10_000) ** 0.1593017578125;
    return ((0.8359375 + 18.8515625 * power) / (1 + 18.6875 * power)) ** 78.84375;
  };
  const hlg = (nits: number) => {
    const scene = (nits / 1000) * (luma(wide) / 1000) ** (-0.2 / 1.2);
    return scene <= 1 / 12 ? Math.sqrt(3 * scene) : 0.17883277 * Math.log(12 * scene - 0.28466892) + 0.55991073;
  };
  const coded = wide.map(transfer === 'smpte2084' ? pq : hlg);
  const y = luma(coded);
  const [cb, cr] = [(coded[2]! - y) / 1.8814, (coded[0]! - y) / 1.4746];
  return [64 + 876 * y, 512 + 896 * cb, 512 + 896 * cr].map(Math.round);
}

for (const [which, find] of encoders) {
  describe(which, () => {
    test('levels are within two of the source’s, whatever its range, matrix and tags', async (t) => {
      const build = await makeBuild(t, await find());
      const { folder } = build;
      const made: Record<string, string> = {};
      const make = async (id: string, name: string, filters: string, output: string[], size?: number[]) => {
        await makeStrips(folder, name, filters, output, size);
        made[id] = name;
      };
      for (const range of ['tv', 'pc']) {
        const to = (matrix: string, format: string) =>
          `scale=out_color_matrix=${matrix}:out_range=${range},format=${format}`;
        await make(`hd-${range}`, `hd-${range}.mp4`, to('bt709', 'yuv420p'), tagged('bt709', 'bt709', 'bt709', range));
        await make(
          `sd-${range}`,
          `sd-${range}.mp4`,
          to('bt601', 'yuv420p'),
          tagged('bt709', 'bt709', 'smpte170m', range),
        );
        const wide = `zscale=pin=709:tin=709:rin=full:min=gbr:p=2020:t=709:m=2020_ncl:r=${range === 'pc' ? 'full' : 'limited'}`;
        const wideTags = tagged('bt2020', 'bt2020-10', 'bt2020nc', range);
        await make(`wide-${range}`, `wide-${range}.mp4`, `${wide},format=yuv420p10le`, wideTags);
      }
      await make('untagged-sd', 'untagged-sd.mp4', 'scale=out_color_matrix=bt601,format=yuv420p', x264());
      await make('untagged-hd', 'untagged-hd.mp4', 'scale=out_color_matrix=bt709,format=yuv420p', x264(), HD);
      // Standard definition that was turned upright is that still.
      const sd = 'scale=out_color_matrix=bt601,format=yuv420p';
      await make('upright-sd', 'upright-sd.mp4', sd, x264(), [96, 720]);
      const jpeg = 'scale=out_color_matrix=bt601:out_range=pc,format=yuvj444p';
      await make('camera', 'camera.avi', jpeg, ['-c:v', 'mjpeg', '-q:v', '1']);
      await make('rgb', 'rgb.mkv', 'null', ['-c:v', 'ffv1']);
      await writeManifest(
        folder,
        Object.entries(made).map(([id, name]) => `{ id: ${id}, title: T, source: ${name}, progressive: [90p] }`),
      );
      await build.build();
      const media = join(build.paths.site, 'media');
      const pictures = (await listFiles(media)).filter((name) => /\.(mp4|jpg)$/.test(name));
      for (const id of Object.keys(made)) {
        assert.ok(pictures.filter((name) => name.startsWith(`${id}/hls/`)).length >= 2, id);
        for (const name of ['90p.mp4', 'poster.jpg', 'thumbs-001.jpg'])
          assert.ok(pictures.includes(`${id}/${name}`), `${id}/${name}`);
      }
      const paths = pictures.map((name) => join(media, name));
      for (const { path, tags, colours } of await look(t, paths)) {
        if (kindOf(path) === 'video') assert.equal(tags, 'tv, bt709', path);
        if (!path.includes('/hls/')) near(colours, kindOf(path) === 'video' ? 2 : 5, path);
      }
    });

    test('HDR10 and HLG become SDR with white as bright as SDR viewers expect it, and colours stay what they are', async (t) => {
      const build = await makeBuild(t, await find());
      const { folder } = build;
      const hevc = ['-c:v', 'libx265', '-x265-params', 'log-level=none', ...hdrTags];
      const ids: string[] = [];
      for (const [kind, transfer] of Object.entries({ pq: 'smpte2084', hlg: 'arib-std-b67' }))
        for (const [colour, rgb] of Object.entries({ white: [255, 255, 255], red: strips[2] })) {
          const [y, u, v] = hdrCodes(rgb, transfer);
          const field = `format=yuv420p10le,lutyuv=y=${y}:u=${u}:v=${v}`;
          await makeStrips(folder, `${kind}-${colour}.mp4`, field, [...hevc, '-color_trc', transfer]);
          ids.push(`${kind}-${colour}`);
        }
      await writeManifest(
        folder,
        ids.map((id) => `{ id: ${id}, title: T, source: ${id}.mp4, progressive: [90p] }`),
      );
      await build.build();
      const files = ids.map((id) => join(build.paths.site, 'media', id, '90p.mp4'));
      for (const [i, { tags, colours }] of (await look(t, files)).entries()) {
        const id = ids[i]!;
        assert.equal(tags, 'tv, bt709', id);
        const [red, green, blue] = colours[0] as [number, number, number];
        const found = `${id}: ${red} ${green} ${blue}`;
        if (id.endsWith('white'))
          assert.ok(
            [red, green, blue].every((value) => value >= 232 && value <= 250),
            found,
          );
        // ffmpeg applies the curve of HLG to each primary by itself, which makes colours stronger.
        else if (id.startsWith('hlg')) assert.ok(red > 180 && red < 216 && green < 60 && blue < 44, found);
        else assert.ok(Math.abs(red - 192) <= 4 && Math.abs(green - 48) <= 4 && Math.abs(blue - 32) <= 4, found);
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
  await makeStrips(build.folder, 'a.mp4', 'format=yuv420p10le', hevc);
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
  const head = (pixels: string, height: number) => toBt709(colourOf(pixels), height, false)[0]!;
  assert.match(head('yuv420p', 480), /in_color_matrix=bt601/);
  assert.match(head('yuv420p', 720), /^setparams/);
  assert.match(head('yuv420p(tv, smpte170m)', 1080), /in_color_matrix=bt601/);
  assert.match(head('yuv420p10le(tv, bt2020nc/bt2020/bt709)', 1080), /^zscale=.*pin=2020/);
});
