// ffmpeg goes on after most errors and ends with code 0. What it complains of stops a stream, unless the manifest allows it.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { open, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { complaintIn } from '../../src/catalogue/media/ffmpeg.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import {
  freshEncoders,
  makeBuild,
  makeFolder,
  makeSource,
  startCatalogue,
  systemFfmpeg,
  type TestBuild,
  writeManifest,
  writeSource,
} from './fixture.ts';

const entry = (more = '') => [`{ id: a, title: A, source: a.mp4, progressive: [36p]${more} }`];

async function refused(build: TestBuild, reason: RegExp): Promise<void> {
  await writeManifest(build.folder, entry());
  await assert.rejects(build.build(), (error: { lines: string[] }) => {
    assert.equal(error.lines.length, 1);
    assert.match(error.lines[0]!, reason);
    return true;
  });
  assert.ok(!existsSync(join(build.paths.site, 'api/streams.json')));
}

async function allowed(build: TestBuild): Promise<number> {
  await writeManifest(build.folder, entry(', allow_damaged: yes'));
  const { document } = await build.build();
  assert.deepEqual((await verifySite({ paths: build.paths, decoder: build.encoder })).faults, []);
  const notes = build.events.filter((event) => event.kind === 'note');
  assert.match(notes[0]!.text, /^a: published although damaged: /);
  return document.streams[0]!.duration_s;
}

for (const [which, find] of freshEncoders) {
  describe(which, () => {
    test('a source that was cut off is refused, and with allow_damaged lasts as long as it has frames', async (t) => {
      const build = await makeBuild(t, await find());
      const whole = ['-movflags', '+faststart', '-g', '5'];
      const source = await makeSource(build.folder, 'a.mp4', { seconds: 4, size: '320x180', output: whole });
      await truncate(source, Math.floor((await stat(source)).size * 0.6));
      await refused(build, /^stream a: .*a\.mp4 is damaged: .* \(allow_damaged: yes publishes what can be decoded\)$/);
      const seconds = await allowed(build);
      assert.ok(seconds > 1 && seconds < 3.5, String(seconds));
    });

    test('a source with flipped bytes is refused with what ffmpeg says of it', async (t) => {
      const build = await makeBuild(t, await find());
      const source = await makeSource(build.folder, 'a.mp4', { seconds: 3, size: '320x180', output: ['-g', '5'] });
      const file = await open(source, 'r+');
      const { size } = await file.stat();
      for (let at = Math.floor(size * 0.3); at < size * 0.5; at += 97) await file.write(Buffer.from([0xa5]), 0, 1, at);
      await file.close();
      await refused(build, /^stream a: .*a\.mp4 is damaged: \S/);
      assert.ok((await allowed(build)) > 2);
    });

    test('a picture that changes its size in mid-stream is refused', async (t) => {
      const build = await makeBuild(t, await find());
      const raw = ['-f', 'h264'];
      await makeSource(build.folder, 'one', { size: '320x180', rate: '25', silent: true, output: raw });
      await makeSource(build.folder, 'two', { size: '160x90', rate: '25', silent: true, output: raw });
      const parts = await Promise.all(['one', 'two'].map((name) => readFile(join(build.folder, name))));
      await writeFile(join(build.folder, 'both'), Buffer.concat(parts));
      const both = ['-r', '25', '-f', 'h264', '-i', join(build.folder, 'both')];
      await writeSource(join(build.folder, 'a.mp4'), [...both, '-c', 'copy', '-f', 'mpegts']);
      await refused(build, /its picture changes its size in mid-stream; convert it to one format first$/);
      await writeManifest(build.folder, entry(', allow_damaged: yes'));
      await assert.rejects(build.build(), /its picture changes its size/);
    });

    test('sound without a single frame becomes silence, never a playlist without segments', async (t) => {
      const build = await makeBuild(t, await find());
      const { folder } = build;
      await makeSource(folder, 'picture.mp4', { seconds: 2, silent: true });
      const late = ['-itsoffset', '1', '-f', 'lavfi', '-i', 'sine=d=0.05'];
      await writeSource(join(folder, 'a.mp4'), [
        ...['-i', join(folder, 'picture.mp4'), ...late, '-map', '0', '-map', '1'],
        ...['-c:v', 'copy', '-c:a', 'aac'],
      ]);
      await writeManifest(folder, entry());
      await build.build();
      assert.deepEqual((await verifySite({ paths: build.paths, decoder: build.encoder })).faults, []);
      const sound = await readFile(join(build.paths.site, 'media/a/hls/a-32.m3u8'), 'utf8');
      assert.match(sound, /#EXTINF:2\.0\d+,/);
    });
  });
}

test('a file that was written short is never published, although ffmpeg ends with code 0', async (t) => {
  const build = await makeBuild(t);
  const noise = { seconds: 2, size: '160x90', filters: 'noise=alls=80:allf=t' };
  await makeSource(build.folder, 'a.mp4', noise);
  const manifest = await writeManifest(build.folder, entry());
  // Every limit of some kilobytes cuts another file in another place: the headers, the data, the move of the headers.
  for (const limitBlocks of [4, 14, 28]) {
    const { code, stderr } = await startCatalogue(['build', manifest, '--dir', build.paths.site], { limitBlocks })
      .ended;
    assert.equal(code, 3, `${limitBlocks}: ${stderr}`);
    assert.equal(stderr.trim().split('\n').length, 1, stderr);
    assert.match(stderr, /^sluice catalogue: /);
    assert.ok(!existsSync(join(build.paths.site, 'api/streams.json')));
  }
  await build.build();
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
});

test('an ffmpeg whose writes fail and that ends with code 0 is not believed', async (t) => {
  const { path } = await systemFfmpeg();
  // Later and later writes of the encode fail, and the wrapper hides it.
  for (const when of [3, 12, 40]) {
    const build = await makeBuild(t, { path: join(await makeFolder(t), 'ffmpeg'), version: 'wrapped' });
    const inject = `inject=write:error=EIO:when=${when}+`;
    const traced = `strace --seccomp-bpf -f -qq -o /dev/null -e trace=write -e ${inject} ${path} "$@" 2>/dev/null; exit 0`;
    const script = `#!/bin/sh\ncase "$*" in *36p.mp4*) ${traced};; *) exec ${path} "$@";; esac\n`;
    await writeFile(build.encoder.path, script, { mode: 0o755 });
    await makeSource(build.folder, 'a.mp4', { seconds: 2 });
    await refused(build, /^stream a: what ffmpeg made of .*a\.mp4 is not whole: .*; is the disk full\?$/);
  }
});

test('messages that mean damage are told from those that do not', () => {
  const damage = [
    '[h264 @ 0x55d0c8] [error] error while decoding MB 3 4, bytestream -5',
    '[mov,mp4,m4a,3gp,3g2,mj2 @ 0x1a] [error] stream 0, offset 0x1bd: partial file',
    '[matroska,webm @ 0x1a] [error] File ended prematurely',
    '[mpegts @ 0x1a] [warning] Packet corrupt (stream = 0, dts = 126000).',
    '[error] Error while decoding stream #0:0: Invalid data found when processing input',
  ];
  for (const line of damage) assert.equal(complaintIn(line)?.kind, 'damage', line);
  const fine = [
    '[mov,mp4,m4a,3gp,3g2,mj2 @ 0x1a] [error] Referenced QT chapter track not found',
    '[swscaler @ 0x1a] [warning] deprecated pixel format used, make sure you did set range correctly',
    '    Last message repeated 3 times',
    '[tee @ 0xaa8ed00] [error] Slave muxer #0 failed, aborting.',
    '[null @ 0x5b] [error] Application provided invalid, non monotonically increasing dts to muxer in stream 0: 4 >= 4',
    '  Duration: 00:00:01.00, start: 0.000000, bitrate: 12 kb/s',
  ];
  for (const line of fine) assert.equal(complaintIn(line), null, line);
  assert.equal(complaintIn('[out#0 @ 0x1a] [error] Error writing: No space left on device')?.kind, 'disk_full');
});
