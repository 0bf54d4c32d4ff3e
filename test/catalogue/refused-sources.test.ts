// What is no video file is refused in one line, with either ffmpeg, and nothing of it or of what it names is published.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { demuxerOf, openSource } from '../../src/catalogue/media/source-file.ts';
import {
  bundledFfmpeg,
  collectCleanup,
  execute,
  makeBuild,
  makeFolder,
  makeSource,
  runCli,
  systemFfmpeg,
  writeManifest,
  writeSource,
} from './fixture.ts';

const dash = `<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT1S"><Period><AdaptationSet>
<Representation id="1" bandwidth="1" mimeType="video/mp4"><BaseURL>secret.mp4</BaseURL></Representation>
</AdaptationSet></Period></MPD>`;

/** Texts that ffmpeg, left to itself, follows to other files or draws. */
const texts: Record<string, string> = {
  'a playlist': '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.mp4\n#EXT-X-ENDLIST\n',
  'a DASH manifest': dash,
  'a concat script': "ffconcat version 1.0\nfile 'secret.mp4'\n",
  'a text': 'user: root\npassword: hunter2\n'.repeat(20),
  'a text that begins with an escape': '\x1b[31mpassword: hunter2\x1b[0m\n'.repeat(20),
  subtitles: '1\n00:00:00,000 --> 00:00:01,000\nhunter2\n',
  'a picture': '\xff\xd8\xff\xe0',
  'an empty file': '',
};

describe('a source that is no video', () => {
  const cleanup = collectCleanup();
  let folder: string;
  before(async () => {
    folder = await makeFolder(cleanup);
    await makeSource(folder, 'secret.mp4', { silent: true });
  });
  test.after(() => cleanup.undoAll());

  for (const [which, find] of [
    ['the system’s ffmpeg', systemFfmpeg],
    ['the ffmpeg that comes with the install', bundledFfmpeg],
  ] as const) {
    test(`is refused with ${which}, whatever its name`, async (t) => {
      const build = await makeBuild(t, await find());
      await copyFile(join(folder, 'secret.mp4'), join(build.folder, 'secret.mp4'));
      const names = Object.keys(texts);
      for (const [i, name] of names.entries())
        await writeFile(join(build.folder, `${i}.mp4`), Buffer.from(texts[name]!, 'latin1'));
      await writeManifest(
        build.folder,
        names.map((name, i) => `{ id: s${i}, title: ${name}, source: ${i}.mp4, progressive: [36p] }`),
      );
      await assert.rejects(build.build({ jobs: 2 }), (error: { lines: string[] }) => {
        assert.equal(error.lines.length, names.length);
        for (const line of error.lines) assert.match(line, /^stream s\d: .*\.mp4 is not a video file: [^\n]*$/);
        return true;
      });
      assert.ok(!existsSync(join(build.paths.site, 'api/streams.json')));
    });

    test(`and one with the head of a video and the body of a playlist names no file to ${which}`, async (t) => {
      const build = await makeBuild(t, await find());
      await copyFile(join(folder, 'secret.mp4'), join(build.folder, 'secret.mp4'));
      const disguised = Buffer.concat([
        Buffer.from('\0\0\0\x08free', 'latin1'),
        Buffer.from(texts['a concat script']!),
      ]);
      await writeFile(join(build.folder, 'a.mp4'), disguised);
      await writeManifest(build.folder, ['{ id: a, title: A, source: a.mp4, progressive: [36p] }']);
      await assert.rejects(build.build(), /stream a: .*a\.mp4 is not a video that ffmpeg can read/);
    });
  }
});

test('containers are recognised by what ffmpeg writes, whatever the name', async (t) => {
  const folder = await makeFolder(t);
  const source = await makeSource(folder, 'a.mp4', { silent: true });
  const kinds: Record<string, string> = {
    mov: 'mov',
    mkv: 'matroska',
    webm: 'matroska',
    avi: 'avi',
    flv: 'flv',
    asf: 'asf',
    ogv: 'ogg',
    ts: 'mpegts',
    m2ts: 'mpegts',
    mpg: 'mpeg',
    m2v: 'mpegvideo',
    nut: 'nut',
    y4m: 'yuv4mpegpipe',
    ivf: 'ivf',
    gif: 'gif',
    h264: 'h264',
    hevc: 'hevc',
    mxf: 'mxf',
  };
  const codecs: Record<string, string[]> = {
    ...{ webm: ['-c:v', 'libvpx'], ivf: ['-c:v', 'libvpx'], m2ts: ['-mpegts_m2ts_mode', '1'] },
    ...{ hevc: ['-c:v', 'libx265', '-x265-params', 'log-level=none'], mxf: ['-c:v', 'mpeg2video', '-r', '25'] },
    ...{ mpg: ['-r', '25'], m2v: ['-r', '25'] },
  };
  const found: Record<string, string> = {};
  for (const ending of Object.keys(kinds)) {
    const path = join(folder, `b.${ending}`);
    await writeSource(path, ['-i', source, ...(codecs[ending] ?? [])]);
    const { file, demuxer } = await openSource(path);
    await file.close();
    found[ending] = demuxer;
  }
  assert.deepEqual(found, kinds);
  assert.equal(demuxerOf(Buffer.from('GGGG'.repeat(1000))), 'mpegts');
  assert.equal(demuxerOf(Buffer.from('G')), null);
});

test('a pipe, a device and a folder are refused at once, in one line each', async (t) => {
  const folder = await makeFolder(t);
  await execute('mkfifo', [join(folder, 'pipe.mp4')]);
  await mkdir(join(folder, 'folder.mp4'));
  await writeManifest(folder, [
    '{ id: a, title: A, source: pipe.mp4, progressive: [36p] }',
    '{ id: b, title: B, source: /dev/zero, progressive: [36p] }',
    '{ id: c, title: C, source: folder.mp4, progressive: [36p] }',
  ]);
  const { code, stderr } = await runCli(['build', join(folder, 'catalogue.yaml'), '--dir', join(folder, 'site')]).ended;
  assert.equal(code, 1);
  assert.deepEqual(stderr.trim().split('\n'), [
    `sluice catalogue: stream a: its source ${folder}/pipe.mp4 is a pipe or a device, not a video file`,
    'sluice catalogue: stream b: its source /dev/zero is a pipe or a device, not a video file',
    `sluice catalogue: stream c: its source ${folder}/folder.mp4 is a folder, not a video file`,
  ]);
});
