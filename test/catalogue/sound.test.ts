// Sound is as long as the picture, is the track the source calls its default, and says its language.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import * as hlsParser from 'hls-parser';
import { languageTag } from '../../src/catalogue/media/describe-input.ts';
import { readFragments } from '../../src/catalogue/media/fragments.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import { type Cleanup, encoders, makeBuild, writeManifest, writeSource } from './fixture.ts';
import { decodeFiles, loudness } from './look.ts';

const FRAME_S = 1 / 25;

async function makeFilm(path: string, pictureS: number, sounds: { seconds: number; hertz?: number }[], more: string[]) {
  const inputs = sounds.flatMap(({ seconds, hertz = 440 }) => ['-f', 'lavfi', '-i', `sine=${hertz}:d=${seconds}`]);
  const maps = Array.from({ length: sounds.length + 1 }, (_, i) => ['-map', String(i)]).flat();
  const picture = ['-f', 'lavfi', '-i', `testsrc2=s=64x36:r=25:d=${pictureS}`];
  const codecs = ['-c:v', 'libx264', '-preset', 'ultrafast', '-c:a', 'aac'];
  await writeSource(path, [...picture, ...inputs, ...maps, ...codecs, ...more]);
}

const SAMPLES = ['-f', 's16le', '-ac', '1', '-ar', '48000'];
const samplesIn = (bytes: Buffer) => new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length >> 1);

/** Seconds of sound that come out of a decoder. */
async function decodedSeconds(t: Cleanup, paths: string[]): Promise<number[]> {
  const sounds = await decodeFiles(
    t,
    paths.map((path, i) => ({ path, output: ['-map', `${i}:a`, ...SAMPLES] })),
  );
  return sounds.map((bytes) => samplesIn(bytes).length / 48_000);
}

/** The loudest pitch of each file, from the number of times its wave crosses zero. */
async function pitches(t: Cleanup, paths: string[]): Promise<number[]> {
  const sounds = await decodeFiles(
    t,
    paths.map((path, i) => ({ path, input: ['-ss', '0.2', '-t', '1'], output: ['-map', `${i}:a`, ...SAMPLES] })),
  );
  return sounds.map(samplesIn).map((samples) => {
    let crossings = 0;
    for (let i = 1; i < samples.length; i++) if (samples[i]! >= 0 !== samples[i - 1]! >= 0) crossings++;
    return crossings / 2 / (samples.length / 48_000);
  });
}

for (const [which, find] of encoders) {
  describe(which, () => {
    test('a picture shorter than its sound is held, sound shorter than its picture padded, within a frame', async (t) => {
      const build = await makeBuild(t, await find());
      const { folder } = build;
      await makeFilm(join(folder, 'long.mp4'), 2, [{ seconds: 7 }], []);
      await makeFilm(join(folder, 'short.mkv'), 4, [{ seconds: 1 }], []);
      await writeManifest(folder, [
        '{ id: long, title: T, source: long.mp4, progressive: [36p] }',
        '{ id: short, title: T, source: short.mkv, progressive: [36p] }',
      ]);
      const { document } = await build.build();
      for (const [i, seconds] of [7, 4].entries()) {
        const stream = document.streams[i]!;
        // Matroska shifts the picture by the sound encoder's delay: a frame more is shown.
        assert.ok(Math.abs(stream.duration_s - seconds) <= FRAME_S + 0.001, String(stream.duration_s));
        const media = (name: string) => join(build.paths.site, 'media', stream.id, name);
        for (const sound of await decodedSeconds(t, ['36p.mp4', 'hls/a-32.mp4'].map(media)))
          assert.ok(Math.abs(sound - stream.duration_s) <= FRAME_S + 0.001, `${stream.id}: ${sound}`);
        const playlist = hlsParser.parse(
          await readFile(media('hls/a-32.m3u8'), 'utf8'),
        ) as hlsParser.types.MediaPlaylist;
        const declared = playlist.segments.reduce((sum, segment) => sum + segment.duration, 0);
        assert.ok(Math.abs(declared - stream.duration_s) <= FRAME_S + 0.003, String(declared));
      }
    });

    test('the default track is taken, with its language; the manifest can say another', async (t) => {
      const build = await makeBuild(t, await find());
      const { folder } = build;
      const languages = ['-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=ger'];
      const second = ['-disposition:a:0', '0', '-disposition:a:1', 'default'];
      const sounds = [
        { seconds: 2, hertz: 300 },
        { seconds: 2, hertz: 900 },
      ];
      await makeFilm(join(folder, 'two.mkv'), 2, sounds, [...languages, ...second]);
      await makeFilm(join(folder, 'plain.mp4'), 1, [{ seconds: 1 }], []);
      await writeManifest(folder, [
        '{ id: two, title: T, source: two.mkv, progressive: [36p] }',
        '{ id: told, title: T, source: two.mkv, language: gsw-ch }',
        '{ id: plain, title: T, source: plain.mp4 }',
      ]);
      await build.build({ jobs: 2 });
      const main = (id: string) => readFile(join(build.paths.site, 'media', id, 'hls/main.m3u8'), 'utf8');
      assert.match(await main('two'), /TYPE=AUDIO.*DEFAULT=YES,AUTOSELECT=YES,LANGUAGE="de",/);
      assert.match(await main('told'), /LANGUAGE="gsw-CH",/);
      assert.doesNotMatch(await main('plain'), /LANGUAGE/);
      const [heard] = await pitches(t, [join(build.paths.site, 'media/two/36p.mp4')]);
      assert.ok(Math.abs(heard! - 900) < 20, String(heard));
    });

    test('six channels are offered as 5.1 beside stereo, both as loud as asked for, with one set of video fragments', async (t) => {
      const build = await makeBuild(t, await find());
      const { folder } = build;
      const six =
        'aevalsrc=0.1*sin(1800*t)|0.1*sin(2400*t)|0.1*sin(6000*t)|0|0.1*sin(3000*t)|0.1*sin(3600*t):c=5.1:d=2';
      const inputs = ['testsrc2=s=64x36:r=10:d=2', six, 'sine=300:d=2'].flatMap((each) => ['-f', 'lavfi', '-i', each]);
      const maps = ['-map', '0', '-map', '1', '-map', '2', '-metadata:s:a:0', 'language=eng'];
      const codecs = ['-metadata:s:a:1', 'language=spa', '-c:v', 'libx264', '-preset', 'ultrafast', '-c:a', 'flac'];
      await writeSource(join(folder, 'six.mkv'), [...inputs, ...maps, ...codecs]);
      await writeManifest(folder, ['{ id: six, title: T, source: six.mkv, progressive: [36p], loudness: -20 }']);
      await build.build();
      assert.deepEqual((await verifySite({ paths: build.paths, decoder: build.encoder })).faults, []);
      const media = (name: string) => join(build.paths.site, 'media/six', name);
      const main = hlsParser.parse(await readFile(media('hls/main.m3u8'), 'utf8')) as hlsParser.types.MasterPlaylist;
      const variants = main.variants.filter((variant) => !variant.isIFrameOnly);
      assert.deepEqual(
        variants.map(({ uri, audio }) => [uri, audio.map(({ groupId, name, channels }) => [groupId, name, channels])]),
        [
          ['audio-32', '2', '2'],
          ['audio-surround', '6', '2'],
        ].map(([group, english, spanish]) => [
          'v-36p.m3u8',
          [
            [group, 'English', english],
            [group, 'Español', spanish],
          ],
        ]),
      );
      assert.ok(variants[1]!.bandwidth > variants[0]!.bandwidth);
      // The fourth is for low tones, of which there are none; the third is the loudest pitch of the source, and in its place.
      const path = media('hls/a-surround.mp4');
      const channels = await decodeFiles(
        t,
        [2, 3].map((number, i) => ({ path, output: ['-map', `${i}:a`, '-af', `pan=mono|c0=c${number}`, ...SAMPLES] })),
      );
      const [third, fourth] = channels.map((bytes) => {
        const loudest = samplesIn(bytes).reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
        return 20 * Math.log10(loudest / 32768);
      }) as [number, number];
      assert.ok(third > -25 && fourth < -60, `${third} ${fourth}`);
      assert.equal((await readFragments(path)).track.channels, 6);
      for (const name of ['36p.mp4', 'hls/a-surround.mp4']) {
        const { lufs, peak } = await loudness(media(name));
        assert.ok(Math.abs(lufs + 20) <= 1 && peak <= -1, `${name}: ${lufs} LUFS, ${peak} dBFS`);
      }
    });

    test('sound alone becomes a stream that shows its cover art, or a plain ground, to its last moment', async (t) => {
      const build = await makeBuild(t, await find());
      const { folder } = build;
      const tone = (hertz: number) => ['-f', 'lavfi', '-i', `sine=${hertz}:d=2.3`];
      const cover = [
        '-f',
        'lavfi',
        '-i',
        'color=c=0xc83232:s=120x120:r=25:d=0.04',
        '-map',
        '0',
        '-map',
        '1',
        '-frames:v',
        '1',
      ];
      const art = ['-c:v', 'mjpeg', '-disposition:v', 'attached_pic'];
      await writeSource(join(folder, 'song.m4a'), [...tone(300), ...cover, ...art, '-c:a', 'aac']);
      await writeSource(join(folder, 'song.mp3'), [...tone(500), ...cover, ...art, '-c:a', 'libmp3lame']);
      await writeSource(join(folder, 'voice.wav'), tone(700));
      await writeSource(join(folder, 'voice.flac'), tone(900));
      const names = ['song.m4a', 'song.mp3', 'voice.wav', 'voice.flac'];
      await writeManifest(
        folder,
        names.map(
          (name, i) => `{ id: s${i}, title: T, source: ${name}, progressive: [36p], hls: ${i === 1 ? 'no' : 'yes'} }`,
        ),
      );
      const { document } = await build.build({ jobs: 2 });
      const told = build.events.filter(({ kind }) => kind === 'note');
      assert.deepEqual(told, [], 'the cover is what is shown');
      assert.deepEqual((await verifySite({ paths: build.paths, decoder: build.encoder })).faults, []);
      const paths = document.streams.map(({ id }) => join(build.paths.site, 'media', id, '36p.mp4'));
      const heard = await pitches(t, paths);
      const pixel = ['-frames:v', '1', '-vf', 'scale=1:1,format=rgb24', '-f', 'rawvideo'];
      const last = await decodeFiles(
        t,
        paths.map((path, i) => ({ path, input: ['-sseof', '-0.3'], output: ['-map', `${i}:v`, ...pixel] })),
      );
      for (const [i, { duration_s }] of document.streams.entries()) {
        assert.ok(duration_s >= 2.3 && duration_s <= 2.61, `${names[i]}: ${duration_s}`);
        assert.ok(Math.abs(heard[i]! - 300 - 200 * i) < 20, names[i]);
        const [red, green] = last[i]!;
        const expected = i < 2 ? [200, 50] : [23, 34];
        assert.ok(
          Math.abs(red! - expected[0]!) < 8 && Math.abs(green! - expected[1]!) < 8,
          `${names[i]}: ${red} ${green}`,
        );
      }
    });
  });
}

test('codes of tracks become the tags that HLS wants', () => {
  const tags = ['eng', 'ger', 'deu', 'fre', 'chi', 'por', 'pt-br', 'und', 'mul', '???'].map(languageTag);
  assert.deepEqual(tags, ['en', 'de', 'de', 'fr', 'zh', 'pt', 'pt-BR', null, null, null]);
});
