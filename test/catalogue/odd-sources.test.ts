// Sources that are easily published as something else than their makers meant: rates that change, film in video, pictures
// that are mirrored, sound that goes on, captions inside the picture.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { runFfmpeg } from '../../src/catalogue/media/ffmpeg.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import {
  type Cleanup,
  encoders,
  execute,
  makeBuild,
  makeFolder,
  makeSource,
  type TestBuild,
  writeManifest,
  writeSource,
} from './fixture.ts';
import { decodeFiles } from './look.ts';

const quick = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p'];

/** Red, green and blue of the four corners, each as the letter of what is strongest: `RB/GW` is red, blue, green, white. */
async function corners(t: Cleanup, paths: string[]): Promise<string[]> {
  const corner = ['-frames:v', '1', '-vf', 'format=gbrp,scale=2:2:flags=area', '-pix_fmt', 'rgb24', '-f', 'rawvideo'];
  const pictures = await decodeFiles(
    t,
    paths.map((path, i) => ({ path, output: ['-map', `${i}:v`, ...corner] })),
  );
  const letters: Record<string, string> = { '100': 'R', '010': 'G', '001': 'B', '111': 'W' };
  return pictures.map((bytes) => {
    const bits = [...bytes].map((value) => (value > 128 ? 1 : 0)).join('');
    const seen = [0, 3, 6, 9].map((at) => letters[bits.slice(at, at + 3)] ?? '?');
    return `${seen.slice(0, 2).join('')}/${seen.slice(2).join('')}`;
  });
}

/** Four colours, with a display matrix in the header of its track. */
async function makeCorners(folder: string, name: string, [a, b, c, d]: number[]): Promise<void> {
  const parts = ['red', 'blue', 'lime', 'white'].map((colour, i) => `color=${colour}:s=32x18:r=10:d=0.3[c${i}]`);
  const graph = `${parts.join(';')};[c0][c1]hstack[t];[c2][c3]hstack[u];[t][u]vstack`;
  const path = await writeSource(join(folder, name), ['-filter_complex', graph, ...quick]);
  const bytes = await readFile(path);
  const matrix = bytes.indexOf('tkhd') + 44;
  for (const [i, value] of [a!, b!, 0, c!, d!].entries()) bytes.writeInt32BE(value * 0x10000, matrix + i * 4);
  await writeFile(path, bytes);
}

/** The loudest sample of a file, in decibels below full scale; above zero it is clipped. */
async function peak(path: string): Promise<number> {
  const args = ['-hide_banner', '-i', path, '-map', '0:a', '-af', 'astats=measure_perchannel=none', '-f', 'null', '-'];
  const { stderr } = await execute('ffmpeg', args);
  return Number(/Peak level dB: (-?[\d.]+)/.exec(stderr)![1]);
}

/** Puts a pair of CEA-608 bytes in front of every picture of a raw H.264 stream. */
function withCaptions(raw: Buffer): Buffer {
  const data = Buffer.from('b5003147413934' + '03' + 'c1ff' + 'fc9420' + 'ff', 'hex');
  const sei = Buffer.concat([Buffer.from([0, 0, 0, 1, 6, 4, data.length]), data, Buffer.from([0x80])]);
  const parts: Buffer[] = [];
  let from = 0;
  for (let at = 0; at + 4 < raw.length; at++) {
    if (raw.readUIntBE(at, 3) !== 1 || ![1, 5].includes(raw[at + 3]! & 0x1f)) continue;
    const start = raw[at - 1] === 0 ? at - 1 : at;
    parts.push(raw.subarray(from, start), sei);
    from = start;
  }
  return Buffer.concat([...parts, raw.subarray(from)]);
}

async function makeCaptioned(folder: string): Promise<void> {
  await makeSource(folder, 'plain', { silent: true, output: ['-f', 'h264', '-x264-params', 'slices=1:threads=1'] });
  await writeFile(join(folder, 'captions'), withCaptions(await readFile(join(folder, 'plain'))));
  const input = ['-r', '10', '-f', 'h264', '-i', join(folder, 'captions'), '-f', 'lavfi', '-i', 'sine=d=1'];
  const subtitles = join(folder, 'a.srt');
  await writeFile(subtitles, '1\n00:00:00,100 --> 00:00:00,900\nHello\n');
  const maps = ['-i', subtitles, ...['0', '1', '2', '0', '2'].flatMap((from) => ['-map', from]), '-c:v', 'copy'];
  const path = join(folder, 'captions.mkv');
  await writeSource(path, [...input, ...maps, '-c:s:0', 'ass', '-c:s:1', 'srt', '-c:a', 'aac']);
  // The last track is said to be of pictures.
  const bytes = await readFile(path, 'latin1');
  await writeFile(path, bytes.replace('S_TEXT/UTF8', 'S_HDMV/PGS\0'), 'latin1');
}

const notesOf = (build: TestBuild) => build.events.flatMap((event) => (event.kind === 'note' ? [event.text] : []));

for (const [which, find] of encoders) {
  describe(which, () => {
    test('odd sources come out as their makers meant them', async (t) => {
      const build = await makeBuild(t, await find());
      const { folder } = build;
      // Two frames a second for a while, then sixty.
      const slow =
        'testsrc2=s=64x36:r=2:d=22[a];testsrc2=s=64x36:r=60:d=2[b];[a]settb=1/1000[c];[b]settb=1/1000[d];[c][d]concat';
      await writeSource(join(folder, 'rates.mkv'), ['-filter_complex', slow, '-vsync', 'vfr', ...quick]);
      // Film with flags: a frame lasts two fields, the next three.
      const flags = "testsrc2=s=64x36:r=24000/1001:d=2,settb=1/120000,setpts='(floor(N/2)*5+mod(N,2)*2)*2002'";
      await writeSource(join(folder, 'flags.mkv'), ['-f', 'lavfi', '-i', flags, '-vsync', 'vfr', ...quick]);
      // Film whose fields were spread over the frames of video.
      const fields = 'testsrc2=s=320x240:r=24000/1001:d=4,telecine=pattern=23';
      const interlaced = ['-flags', '+ildct+ilme', '-x264opts', 'tff=1'];
      await writeSource(join(folder, 'fields.mp4'), ['-f', 'lavfi', '-i', fields, ...quick, ...interlaced]);
      await makeCorners(folder, 'mirrored.mp4', [-1, 0, 0, 1]);
      await makeCorners(folder, 'turned.mp4', [0, -1, -1, 0]);
      const tones = [0, 1, 2, 3, 4, 5].map(() => '0.6*sin(880*PI*t)').join('|');
      const loud = [
        '-f',
        'lavfi',
        '-i',
        `aevalsrc=${tones}:c=5.1:d=1`,
        '-f',
        'lavfi',
        '-i',
        'testsrc2=s=64x36:r=10:d=1',
      ];
      await writeSource(join(folder, 'loud.mkv'), [...loud, ...quick, '-c:a', 'pcm_s16le']);
      const still = ['-f', 'lavfi', '-i', 'testsrc2=s=64x36:r=25:d=0.04', '-f', 'lavfi', '-i', 'sine=d=10'];
      await writeSource(join(folder, 'still.mp4'), [...still, ...quick, '-c:a', 'aac']);
      await makeCaptioned(folder);
      const names = [
        'rates.mkv',
        'flags.mkv',
        'fields.mp4',
        'mirrored.mp4',
        'turned.mp4',
        'loud.mkv',
        'still.mp4',
        'captions.mkv',
      ];
      await writeManifest(
        folder,
        names.map((name) => `{ id: ${name.split('.')[0]}, title: T, source: ${name}, progressive: [36p] }`),
      );
      const { document, failed } = await build.build({ jobs: 2 });
      assert.deepEqual(failed, []);
      assert.deepEqual((await verifySite({ paths: build.paths, decoder: build.encoder })).faults, []);
      const media = (path: string) => join(build.paths.site, 'media', path);
      const stream = (id: string) => document.streams.find((each) => each.id === id)!;

      assert.equal(stream('rates').fps, 30, 'sixty frames a second, of which a small rung shows every second');
      assert.equal(stream('flags').fps, 23.976);
      assert.equal(stream('fields').fps, 23.976);
      assert.ok(Math.abs(stream('fields').duration_s - 4) < 0.1, String(stream('fields').duration_s));
      assert.deepEqual(await corners(t, ['mirrored/36p.mp4', 'turned/36p.mp4'].map(media)), ['BR/WG', 'WB/GR']);
      const loudest = await peak(media('loud/36p.mp4'));
      assert.ok(loudest < 0, String(loudest));
      assert.ok(Math.abs(stream('still').duration_s - 10) < 0.1, String(stream('still').duration_s));
      for (const name of ['captions/36p.mp4', 'captions/hls/v-36p.mp4', 'captions/hls/iframes.mp4'])
        assert.ok(!(await readFile(media(name))).includes('GA94'), `${name} has captions inside`);
      const lost = notesOf(build).find((note) => note.startsWith('captions: not carried over: '))!;
      assert.match(lost, /captions inside the picture \(CEA-608\)/);
      assert.match(lost, /video track 3 \(h264\)/);
      assert.match(lost, /subtitle track 4 \(hdmv_pgs_subtitle\)/);
      assert.equal(Object.values(stream('captions').captions as object).length, 1, 'those that are text are there');
    });
  });
}

test('sound that goes on for hours after the picture is refused, with what would work', async (t) => {
  const build = await makeBuild(t);
  const long = [
    '-f',
    'lavfi',
    '-i',
    'testsrc2=s=64x36:r=10:d=1',
    '-itsoffset',
    '15000',
    '-f',
    'lavfi',
    '-i',
    'sine=d=1',
  ];
  await writeSource(join(build.folder, 'a.mkv'), [...long, ...quick, '-c:a', 'aac']);
  await writeManifest(build.folder, ['{ id: a, title: T, source: a.mkv, progressive: [36p] }']);
  await assert.rejects(build.build(), /a\.mkv: its sound goes on for 250 minutes after its picture.* cut its sound/);
});

test('a source whose last frame comes after days is refused before the time until then is encoded', async (t) => {
  const build = await makeBuild(t);
  const days = ['-f', 'lavfi', '-i', 'testsrc2=s=64x36:r=1:d=3,setpts=N*100000/TB', '-vsync', 'vfr', ...quick];
  await writeSource(join(build.folder, 'a.mkv'), days);
  await writeManifest(build.folder, ['{ id: a, title: T, source: a.mkv, progressive: [36p] }']);
  await assert.rejects(build.build(), /a\.mkv lasts \d+ hours, a stream 48 hours at most; cut it up/);
});

test('a picture of more than 8K is refused before it is decoded', async (t) => {
  const build = await makeBuild(t);
  const huge = ['-f', 'lavfi', '-i', 'color=s=8000x5000:r=1:d=1', '-c:v', 'mjpeg', '-pix_fmt', 'yuvj420p'];
  await writeSource(join(build.folder, 'a.mkv'), huge);
  await writeManifest(build.folder, ['{ id: a, title: T, source: a.mkv, progressive: [36p] }']);
  await assert.rejects(build.build(), /a\.mkv has more than 36 million pixels in a frame; scale it down/);
});

test('ffmpeg may use part of the memory, and is stopped once it gets nowhere', async (t) => {
  const path = join(await makeFolder(t), 'ffmpeg');
  await writeFile(path, '#!/bin/sh\nulimit -v >&2\ncase "$*" in *hang*) exec sleep 100;; esac\n', { mode: 0o755 });
  const program = { path, version: 'ffmpeg 5' };
  const kilobytes = Number(await runFfmpeg(program, []));
  const share = Math.min(32 * 1024 ** 3, Math.max(4 * 1024 ** 3, totalmem() * 0.75)) / 1024;
  assert.ok(Math.abs(kilobytes - share) <= 1, `${kilobytes} kB`);
  await assert.rejects(runFfmpeg(program, ['hang'], { quietMs: 300 }), /got nowhere for 0 minutes and was stopped/);
});
