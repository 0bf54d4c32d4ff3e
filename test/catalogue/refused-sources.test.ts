// What is no video file is refused in one line, with either ffmpeg, and nothing of it or of what it names is published.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { demuxerOf, openSource } from '../../src/catalogue/media/source-file.ts';
import { sitePathsOf } from '../../src/catalogue/site-paths.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import {
  cliPath,
  collectCleanup,
  execute,
  freshEncoders,
  makeBuild,
  makeFolder,
  makeSource,
  runCatalogue,
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

const kinds = [
  'a playlist',
  'a playlist',
  'a concat script',
  'a text',
  'a text',
  'subtitles',
  'a picture',
  'an empty file',
];

describe('a source that is no video', () => {
  const cleanup = collectCleanup();
  let folder: string;
  before(async () => {
    folder = await makeFolder(cleanup);
    await makeSource(folder, 'secret.mp4', { silent: true });
  });
  test.after(() => cleanup.undoAll());

  for (const [which, find] of freshEncoders) {
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
        for (const [i, line] of error.lines.sort().entries())
          assert.match(line, new RegExp(`^stream s${i}: ${i}\\.mp4 is not a video file: it is ${kinds[i]}; [^\\n]+$`));
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
      await assert.rejects(build.build(), ({ message }: Error) => {
        assert.match(message, /stream a: .*a\.mp4 is not a video that ffmpeg can read/);
        assert.doesNotMatch(message, /\/proc\//);
        return true;
      });
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
    const { file, demuxer } = await openSource({ path, name: path });
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
  const { code, stderr } = await runCatalogue(['build', join(folder, 'catalogue.yaml'), '--dir', join(folder, 'site')]);
  assert.equal(code, 3);
  assert.deepEqual(stderr.trim().split('\n'), [
    'sluice catalogue: stream a: its source pipe.mp4 is a pipe or a device, not a video file',
    'sluice catalogue: stream b: its source /dev/zero is a pipe or a device, not a video file',
    'sluice catalogue: stream c: its source folder.mp4 is a folder, not a video file',
  ]);
});

test('one bad source leaves the others published: exit code 3, and each is named with what would work', async (t) => {
  const folder = await makeFolder(t);
  const site = join(folder, 'site');
  await makeSource(folder, 'good.mp4');
  await makeSource(folder, 'known.mp4', { hue: 90 });
  const key = [
    '-encryption_key',
    '76a6c65c5ea762046bd749a2e632ccbb',
    '-encryption_kid',
    'a7e61c373e219033c21091fa607bf3b8',
  ];
  const locked = ['-i', join(folder, 'good.mp4'), '-c', 'copy', '-encryption_scheme', 'cenc-aes-ctr', ...key];
  await writeSource(join(folder, 'locked.mp4'), locked);
  await writeFile(join(folder, 'notes.mp4'), 'notes on the film\n');
  const stream = (id: string) => `{ id: ${id}, title: T, source: ${id}.mp4, progressive: [36p], hls: no }`;
  const manifest = await writeManifest(folder, [stream('known')]);
  const build = (...more: string[]) => runCatalogue(['build', manifest, '--dir', site, ...more]);
  assert.equal((await build()).code, 0);
  // What is published keeps being published, although its source is gone and more is asked of it.
  await rm(join(folder, 'known.mp4'));
  const bad = ['missing', 'locked', 'notes'].map(stream);
  await writeManifest(folder, [stream('known').replace('[36p]', '[36p, 90p]'), ...bad, stream('good')]);
  const document = async () => JSON.parse(await readFile(join(site, 'api/streams.json'), 'utf8'));
  const ids = async () => (await document()).streams.map(({ id }: { id: string }) => id);

  const strict = await build('--strict');
  assert.equal(strict.code, 1);
  assert.deepEqual(await ids(), ['known']);
  const { code, stdout, stderr } = await build();
  assert.equal(code, 3);
  assert.deepEqual(stderr.trim().split('\n').sort(), strict.stderr.trim().split('\n').sort());
  assert.deepEqual(stderr.trim().split('\n').sort(), [
    `sluice catalogue: stream known: its source known.mp4 does not exist (there is no ${folder}/known.mp4)`,
    'sluice catalogue: stream locked: locked.mp4 is encrypted (DRM): only its publisher can decrypt it; use the unprotected original',
    `sluice catalogue: stream missing: its source missing.mp4 does not exist (there is no ${folder}/missing.mp4)`,
    'sluice catalogue: stream notes: notes.mp4 is not a video file: it is a text; name a video',
  ]);
  assert.match(stdout, /^notes: failed \(\d of 3\)$/m);
  assert.match(stdout, /^good: ready \(\d of 3\)$/m);
  assert.doesNotMatch(stdout, /(notes|locked): ready/);
  assert.deepEqual(await ids(), ['known', 'good']);
  assert.deepEqual((await verifySite({ paths: sitePathsOf(site) })).faults, []);
  assert.equal((await build()).code, 3, 'the next build tries again');
});

test('a source that cannot be opened is named with its reason', async (t) => {
  const folder = await makeFolder(t);
  await makeSource(folder, 'a.mp4');
  await writeManifest(folder, ['{ id: a, title: T, source: a.mp4, progressive: [36p] }']);
  // Root may open everything: the system call is made to fail instead.
  const { stderr } = await execute('strace', [
    ...[
      '--seccomp-bpf',
      '-f',
      '-qq',
      '-o',
      '/dev/null',
      '-P',
      join(folder, 'a.mp4'),
      '-e',
      'trace=openat',
      '-e',
      'inject=openat:error=EACCES',
    ],
    ...[process.execPath, cliPath, 'catalogue', 'build', join(folder, 'catalogue.yaml'), '--dir', join(folder, 'site')],
  ]).catch((error: { stderr: string; code: number }) => error);
  assert.match(
    stderr,
    /^sluice catalogue: stream a: its source a\.mp4 cannot be read: permission denied; let \S+ read it/,
  );
});
