// Picture and sound together: a flash and a beep at the same instant are at the same instant in every reader.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { encoders, execute, makeBuild, writeManifest, writeSource } from './fixture.ts';
import { launchPlayer, openPlayer, ready } from './player.ts';
import { startOrigin } from './servers.ts';

const FRAME_S = 1 / 25;
const FLASH_S = 1;

/** When the first flash and the first beep come, in a program built on ffmpeg. */
async function flashAndBeep(path: string): Promise<{ flash: number; beep: number }> {
  const filters = ['-vf', 'blackdetect=d=0.1:pix_th=0.3', '-af', 'silencedetect=n=-30dB:d=0.1'];
  const { stderr } = await execute('ffmpeg', ['-hide_banner', '-nostats', '-i', path, ...filters, '-f', 'null', '-']);
  const time = (pattern: RegExp) => Number(pattern.exec(stderr)![1]);
  return { flash: time(/black_end:([\d.]+)/), beep: time(/silence_end: ([\d.]+)/) };
}

/** When a track's packets are decoded and shown, with its edit list or without. */
async function packetTimes(path: string, editList: boolean): Promise<{ decoded: number[]; shown: number[] }> {
  const entries = ['-show_entries', 'packet=pts_time,dts_time', '-of', 'json'];
  const { stdout } = await execute('ffprobe', [
    '-v',
    'error',
    '-ignore_editlist',
    editList ? '0' : '1',
    ...entries,
    path,
  ]);
  const { packets } = JSON.parse(stdout) as { packets: { pts_time: string; dts_time: string }[] };
  return {
    decoded: packets.map(({ dts_time }) => Number(dts_time)),
    shown: packets.map(({ pts_time }) => Number(pts_time)),
  };
}

for (const [which, find] of encoders) {
  describe(which, () => {
    test('a flash and a beep are within a frame of each other, in ffmpeg and in a browser', async (t) => {
      const build = await makeBuild(t, await find());
      const flash = `color=black:s=64x36:r=25:d=3,drawbox=t=fill:color=white:enable='between(t,${FLASH_S},1.3)'`;
      const beep = `aevalsrc='0.8*sin(2000*PI*t)*between(t,${FLASH_S},1.3)':d=3`;
      const inputs = ['-f', 'lavfi', '-i', flash, '-f', 'lavfi', '-i', beep];
      await writeSource(join(build.folder, 'a.mkv'), [...inputs, '-c:v', 'mpeg4', '-q:v', '2', '-c:a', 'pcm_s16le']);
      const manifest = await writeManifest(build.folder, ['{ id: a, title: A, source: a.mkv, progressive: [36p] }']);
      // Only with reordered frames is there anything to get wrong.
      await writeFile(manifest, (await readFile(manifest, 'utf8')).replace('ultrafast', 'medium'));
      await build.build();
      for (const name of ['36p.mp4', 'hls/main.m3u8']) {
        const found = await flashAndBeep(join(build.paths.site, 'media/a', name));
        const text = `${name}: flash at ${found.flash} s, beep at ${found.beep} s`;
        assert.ok(Math.abs(found.flash - found.beep) < FRAME_S, text);
        assert.ok(Math.abs(found.flash - FLASH_S) < FRAME_S, text);
      }
      // Frames are reordered by composition offsets that are never negative, and the edit list takes the delay of that away.
      const track = join(build.paths.site, 'media/a/hls/v-36p.mp4');
      const bare = await packetTimes(track, false);
      assert.ok(bare.shown.every((time, i) => time >= bare.decoded[i]!));
      assert.ok(Math.min(...bare.shown) >= FRAME_S, `${Math.min(...bare.shown)} s`);
      assert.equal(Math.min(...(await packetTimes(track, true)).shown), 0);
      const browser = await launchPlayer();
      t.after(() => browser.close());
      const { page, wrong } = await openPlayer(browser, t, `${await startOrigin(t, build.paths.site)}/#/a`);
      await ready(page);
      const shownAt = await page.evaluate(
        () =>
          new Promise<number>((resolve) => {
            const video = document.querySelector('video')!;
            const canvas = new OffscreenCanvas(1, 1).getContext('2d')!;
            const look = (_: number, { mediaTime }: { mediaTime: number }) => {
              canvas.drawImage(video, 0, 0, 1, 1);
              if (canvas.getImageData(0, 0, 1, 1).data[0]! > 128) resolve(mediaTime);
              else video.requestVideoFrameCallback(look);
            };
            video.requestVideoFrameCallback(look);
            video.muted = true;
            // Slowly, so that a busy machine shows every frame.
            video.playbackRate = 0.5;
            void video.play();
          }),
      );
      assert.ok(Math.abs(shownAt - FLASH_S) <= FRAME_S + 0.001, `the browser shows the flash at ${shownAt} s`);
      assert.deepEqual(wrong, []);
    });
  });
}
