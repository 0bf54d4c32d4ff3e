// Captions, languages, loudness and chapters: from the source and from files beside it, in the document and in HLS.
import assert from 'node:assert/strict';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import * as hlsParser from 'hls-parser';
import { listFiles } from '../../src/catalogue/files.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import { encoders, makeBuild, writeManifest, writeSource } from './fixture.ts';
import { loudness } from './look.ts';

hlsParser.setOptions({ strictMode: true, silent: true, allowClosedCaptionsNone: true });

const SECONDS = 8;

/** Two languages, a description, a commentary, captions, and three chapters. */
async function makeFilm(folder: string): Promise<void> {
  const tone = (hertz: number, level: number) => [
    '-f',
    'lavfi',
    '-i',
    `aevalsrc=${level}*sin(${hertz * 2}*PI*t):d=${SECONDS}`,
  ];
  await writeFile(join(folder, 'inside.srt'), '1\n00:00:05,000 --> 00:00:07,000\nGuten Tag\n');
  const chapters =
    ';FFMETADATA1\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=3000\ntitle=Calm\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=3000\nEND=8000\ntitle=Storm\n';
  await writeFile(join(folder, 'chapters.ini'), chapters);
  const inputs = [
    ...['-f', 'lavfi', '-i', `testsrc2=s=64x36:r=10:d=${SECONDS}`],
    ...[...tone(300, 0.02), ...tone(900, 0.5), ...tone(600, 0.1), ...tone(450, 0.1)],
    ...['-i', join(folder, 'inside.srt'), '-i', join(folder, 'chapters.ini')],
  ];
  const maps = [0, 1, 2, 3, 4, 5].flatMap((input) => ['-map', String(input)]);
  const about = [
    ...[
      '-map_metadata',
      '6',
      '-map_chapters',
      '6',
      '-metadata:s:a:0',
      'language=eng',
      '-metadata:s:a:1',
      'language=spa',
    ],
    ...['-metadata:s:a:3', 'language=eng', '-disposition:a:3', 'comment'],
    ...['-metadata:s:a:2', 'language=eng', '-disposition:a:2', 'visual_impaired', '-metadata:s:s:0', 'language=ger'],
  ];
  const codecs = ['-c:v', 'libx264', '-preset', 'ultrafast', '-c:a', 'flac', '-c:s', 'srt'];
  await writeSource(join(folder, 'film.mkv'), [...inputs, ...maps, ...about, ...codecs]);
}

for (const [which, find] of encoders) {
  describe(which, () => {
    test('every language, captions and chapters come through, and the sound is as loud as asked for', async (t) => {
      const build = await makeBuild(t, await find());
      const { folder } = build;
      await makeFilm(folder);
      await writeFile(join(folder, 'en.srt'), '1\r\n00:00:01,000 --> 00:00:02,500\r\nHello & <i>welcome</i>\r\n');
      await writeFile(join(folder, 'fr.vtt'), 'WEBVTT\n\n00:05.500 --> 00:06.500 line:0\nPanneau\n');
      const captions =
        'captions: [{ source: en.srt, language: en, default: yes }, { source: fr.vtt, language: fr, name: Signs, forced: yes }]';
      await writeManifest(folder, [
        `{ id: film, title: T, source: film.mkv, progressive: [36p], ${captions}, loudness: -16 }`,
        '{ id: spanish, title: T, source: film.mkv, audio: [spa], progressive: [36p] }',
        '{ id: klingon, title: T, source: film.mkv, audio: [tlh] }',
        '{ id: broken, title: T, source: film.mkv, captions: [{ source: film.mkv, language: en }] }',
      ]);
      const { document, failed } = await build.build({ jobs: 2 });
      assert.deepEqual(Object.fromEntries(failed.map(({ ids, reasons }) => [ids[0], reasons[0]])), {
        broken: 'its captions film.mkv has no cue; it has to be SubRip (.srt) or WebVTT (.vtt)',
        klingon: 'film.mkv has no sound in tlh; it has en, es',
      });
      assert.deepEqual((await verifySite({ paths: build.paths, decoder: build.encoder })).faults, []);
      const [film, spanish] = document.streams;
      assert.deepEqual(film!.captions, [
        { language: 'en', name: 'English', default: true, forced: false, path: '/media/film/captions/en.vtt' },
        { language: 'fr', name: 'Signs', default: false, forced: true, path: '/media/film/captions/fr.vtt' },
        { language: 'de', name: 'Deutsch', default: false, forced: false, path: '/media/film/captions/de.vtt' },
      ]);
      assert.deepEqual(film!.audio, [
        { language: 'en', name: 'English' },
        { language: 'es', name: 'Español' },
        { language: 'en', name: 'English, Audio description' },
        { language: 'en', name: 'English, Commentary' },
      ]);
      assert.deepEqual(spanish!.audio, [{ language: 'es', name: 'Español' }]);
      assert.deepEqual([film!.width, film!.height], [64, 36]);
      assert.deepEqual(film!.bytes, { '36p': (await stat(join(build.paths.site, film!.progressive['36p']!))).size });
      const media = (path: string) => join(build.paths.site, 'media', path);
      const text = (path: string) => readFile(media(path), 'utf8');
      assert.equal(
        await text('film/captions/en.vtt'),
        'WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nHello &amp; <i>welcome</i>\n',
      );
      assert.match(await text('film/captions/de.vtt'), /00:00:05\.000 --> 00:00:07\.000\nGuten Tag\n/);
      assert.equal(
        await text('film/chapters.vtt'),
        'WEBVTT\n\n00:00:00.000 --> 00:00:03.000\nCalm\n\n00:00:03.000 --> 00:00:08.000\nStorm\n',
      );
      assert.equal(film!.chapters, '/media/film/chapters.vtt');

      const main = hlsParser.parse(await text('film/hls/main.m3u8')) as hlsParser.types.MasterPlaylist;
      const [variant] = main.variants.filter((each) => !each.isIFrameOnly);
      assert.deepEqual(
        variant!.audio.map(({ name, language, isDefault, autoselect, characteristics }) => [
          name,
          language,
          isDefault,
          autoselect,
          characteristics,
        ]),
        [
          ['English', 'en', true, true, undefined],
          ['Español', 'es', false, true, undefined],
          ['English, Audio description', 'en', false, true, 'public.accessibility.describes-video'],
          ['English, Commentary', 'en', false, false, 'public.auxiliary-content'],
        ],
      );
      assert.deepEqual(
        variant!.subtitles.map(({ name, language, isDefault, forced }) => [name, language, isDefault, forced]),
        [
          ['English', 'en', true, false],
          ['Signs', 'fr', false, true],
          ['Deutsch', 'de', false, false],
        ],
      );
      // Shown across the cut at six seconds, so in both segments.
      for (const name of ['00001', '00002']) {
        const segment = await text(`film/hls/c-3/${name}.vtt`);
        assert.match(segment, /^WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00\.000\n/);
        assert.match(segment, /Guten Tag/);
      }
      const videos = (await listFiles(media('film/hls'))).filter((name) => /^v-.*\.mp4$/.test(name));
      assert.deepEqual(videos, ['v-36p.mp4'], 'one set of video fragments for all languages');
      for (const name of ['film/36p.mp4', 'film/hls/a-32-1.mp4', 'film/hls/a-32-2.mp4']) {
        const { lufs, peak } = await loudness(media(name));
        assert.ok(Math.abs(lufs + 16) <= 1 && peak <= -1, `${name}: ${lufs} LUFS, ${peak} dBFS`);
      }
      assert.deepEqual((await build.build()).encoded, [], 'nothing to do the second time');
    });
  });
}
