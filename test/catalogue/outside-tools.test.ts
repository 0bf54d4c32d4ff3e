// Ten sources, and what tools that are not ours say of the media made from them: Shaka Packager packages the same tracks
// and must come to the same figures; mp4box.js, MediaInfo and hls-parser find nothing wrong with any file.
import assert from 'node:assert/strict';
import { access, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import * as hlsParser from 'hls-parser';
import { toolsDir } from '../../scripts/test-tools.ts';
import { listFiles } from '../../src/catalogue/files.ts';
import {
  collectCleanup,
  execute,
  makeBuild,
  makeSource,
  quickCodec,
  type SourceOptions,
  writeManifest,
} from './fixture.ts';

const requireTool = createRequire(join(toolsDir, 'package.json'));
/** Its script would hide how it ended. */
const shaka = join(toolsDir, `node_modules/shaka-packager/bin/packager-linux-${process.arch}`);

hlsParser.setOptions({ strictMode: true, silent: true, allowClosedCaptionsNone: true });

const renditions = `renditions:
  - { label: 36p, width: 64, height: 36, video_kbps: 100, audio_kbps: 48 }
  - { label: 54p, width: 96, height: 54, video_kbps: 200, audio_kbps: 96 }
`;

/** Pictures that fill the bit rates of their rungs. */
const noise = { filters: 'noise=alls=20:allf=t', output: quickCodec };

/**
 * Their last segments are longer than half of the others: for shorter ones RFC 8216 takes the neighbour in, Shaka Packager
 * leaves them out (segments.test.ts has those).
 */
const sources: Record<string, SourceOptions> = {
  cinema: { ...noise, seconds: 10, size: '96x54', rate: '24', silent: true },
  film: { ...noise, seconds: 6, size: '96x54', rate: '24000/1001' },
  pal: { ...noise, seconds: 16, size: '96x54', rate: '25', silent: true },
  ntsc: { ...noise, seconds: 10, size: '96x54', rate: '30000/1001' },
  web: { ...noise, seconds: 6, size: '96x54', rate: '30' },
  fast: { ...noise, seconds: 6, size: '96x54', rate: '50' },
  small: { ...noise, seconds: 6, size: '64x36', rate: '25' },
  upright: { ...noise, seconds: 6, size: '54x96', rate: '25' },
  silent: { ...noise, seconds: 10, size: '96x54', rate: '25', silent: true },
  rising: { ...noise, seconds: 10, size: '96x54', rate: '25', filters: `${noise.filters}:all_seed=7,fade=in:0:200` },
};

interface Track {
  name: string;
  bandwidth: number;
  average: number;
  codecs: string;
  picture: string;
  segments: { seconds: number; size: number }[];
}

const within = (ours: number, theirs: number) => Math.abs(ours / theirs - 1) <= 0.01;

async function parsePlaylist(folder: string, name: string): Promise<hlsParser.types.Playlist> {
  return hlsParser.parse(await readFile(join(folder, name), 'utf8'));
}

async function segmentsOf(folder: string, name: string): Promise<Track['segments']> {
  const { segments } = (await parsePlaylist(folder, name)) as hlsParser.types.MediaPlaylist;
  return segments.map((segment) => ({ seconds: segment.duration, size: segment.byterange!.length }));
}

async function variantsOf(folder: string): Promise<Track[]> {
  const { variants } = (await parsePlaylist(folder, 'main.m3u8')) as hlsParser.types.MasterPlaylist;
  const tracks = variants
    .filter((variant) => !variant.isIFrameOnly)
    .map(async (variant) => ({
      name: variant.uri,
      bandwidth: variant.bandwidth,
      average: variant.averageBandwidth!,
      codecs: variant.codecs!,
      picture: `${variant.resolution!.width}x${variant.resolution!.height} at ${Number(variant.frameRate).toFixed(1)}`,
      segments: await segmentsOf(folder, variant.uri),
    }));
  return (await Promise.all(tracks)).sort((a, b) => a.name.localeCompare(b.name));
}

/** Once in hundreds of times, on a busy machine, it ends without its playlist: that says nothing of what it was given. */
async function runShaka(args: string[], playlist: string, attempts = 3): Promise<void> {
  try {
    await execute(shaka, [...args, '--hls_master_playlist_output', playlist]);
    await access(playlist);
  } catch (error) {
    if (attempts === 1) throw error;
    await runShaka(args, playlist, attempts - 1);
  }
}

/** Packages the tracks of a stream anew, each rung with the sound that our playlist gives it. */
async function packageWithShaka(ours: string, folder: string): Promise<Track[]> {
  const { variants } = (await parsePlaylist(ours, 'main.m3u8')) as hlsParser.types.MasterPlaylist;
  const tracks: Track[] = [];
  for (const variant of variants.filter((each) => !each.isIFrameOnly)) {
    const stem = variant.uri.replace('.m3u8', '');
    const to = join(folder, stem);
    const sound = variant.audio[0]?.uri?.replace('.m3u8', '');
    const describeTrack = (kind: string, name: string) =>
      `in=${join(ours, `${name}.mp4`)},stream=${kind},output=${join(to, `${name}.mp4`)},playlist_name=${name}.m3u8` +
      (kind === 'audio' ? ',hls_group_id=sound' : '');
    const described = [describeTrack('video', stem), ...(sound ? [describeTrack('audio', sound)] : [])];
    await runShaka([...described, '--segment_duration', '6', '--quiet'], join(to, 'main.m3u8'));
    tracks.push(...(await variantsOf(to)));
  }
  return tracks.sort((a, b) => a.name.localeCompare(b.name));
}

describe('other people’s tools', () => {
  const cleanup = collectCleanup();
  after(cleanup.undoAll);
  let media = '';
  let scratch = '';

  before(async () => {
    const build = await makeBuild(cleanup);
    const streams = Object.keys(sources).map(
      (id) => `{ id: ${id}, title: ${id}, source: ${id}.mp4, progressive: [${id === 'pal' ? '36p' : ''}] }`,
    );
    for (const [id, options] of Object.entries(sources)) await makeSource(build.folder, `${id}.mp4`, options);
    await writeManifest(build.folder, streams, renditions);
    await build.build({ jobs: 2 });
    media = join(build.paths.site, 'media');
    scratch = join(build.folder, 'shaka');
  });

  for (const id of Object.keys(sources))
    test(`Shaka Packager agrees within 1 %: ${id}`, async () => {
      const ours = await variantsOf(join(media, id, 'hls'));
      const theirs = await packageWithShaka(join(media, id, 'hls'), join(scratch, id));
      assert.deepEqual(
        ours.map(({ name, codecs, picture, segments }) => [name, codecs, picture, segments.length]),
        theirs.map(({ name, codecs, picture, segments }) => [name, codecs, picture, segments.length]),
      );
      for (const [i, our] of ours.entries()) {
        const their = theirs[i]!;
        assert.ok(within(our.bandwidth, their.bandwidth), `BANDWIDTH ${our.bandwidth} against ${their.bandwidth}`);
        assert.ok(within(our.average, their.average), `AVERAGE-BANDWIDTH ${our.average} against ${their.average}`);
        for (const [k, segment] of our.segments.entries()) {
          assert.ok(within(segment.seconds, their.segments[k]!.seconds), `EXTINF of ${our.name}, ${k}`);
          assert.ok(
            within(segment.size, their.segments[k]!.size),
            `range of ${our.name}, ${k}: ${segment.size} against ${their.segments[k]!.size}`,
          );
        }
      }
    });

  test('hls-parser reads every playlist strictly', async () => {
    const playlists = (await listFiles(media)).filter((name) => name.endsWith('.m3u8'));
    assert.ok(playlists.length >= 3 * Object.keys(sources).length);
    for (const name of playlists) await parsePlaylist(media, name);
  });

  test('mp4box.js reads every file to its end without a complaint', async () => {
    const { createFile, Log } = requireTool('mp4box');
    const complaints: string[] = [];
    Log.error = (_module: string, text: string) => complaints.push(text);
    Log.warn = (_module: string, text: string) => complaints.push(text);
    for (const name of (await listFiles(media)).filter((each) => each.endsWith('.mp4'))) {
      const file = createFile();
      const bytes = await readFile(join(media, name));
      let tracks = 0;
      file.onReady = (movie: { tracks: unknown[] }) => {
        tracks = movie.tracks.length;
      };
      file.onError = (_module: string, text: string) => complaints.push(text);
      file.appendBuffer(
        Object.assign(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), { fileStart: 0 }),
      );
      file.flush();
      assert.ok(tracks > 0, name);
      const read = file.boxes.reduce((sum: number, box: { size: number }) => sum + box.size, 0);
      assert.equal(read, bytes.length, name);
    }
    assert.deepEqual(complaints, []);
  });

  test('MediaInfo finds nothing wrong, and finds a file that was cut', async () => {
    const { default: mediaInfoFactory } = requireTool('mediainfo.js');
    const inspector = await mediaInfoFactory({ format: 'object', full: true });
    const inspect = async (bytes: Buffer): Promise<string> =>
      JSON.stringify(
        await inspector.analyzeData(bytes.length, (length: number, from: number) =>
          bytes.subarray(from, from + length),
        ),
      );
    const fault = /Conformance|IsTruncated/;
    try {
      for (const name of (await listFiles(media)).filter((each) => each.endsWith('.mp4'))) {
        const found = await inspect(await readFile(join(media, name)));
        assert.match(found, /"Format":"(AVC|AAC)"/, name);
        assert.doesNotMatch(found, fault, name);
      }
      const whole = await readFile(join(media, 'pal/36p.mp4'));
      assert.match(await inspect(whole.subarray(0, whole.length - 1000)), fault);
    } finally {
      inspector.close();
    }
  });
});
