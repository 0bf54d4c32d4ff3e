// One source → a folder with everything that is published of it. The folder is complete when this returns.
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Preset, Rendition } from '../manifest.ts';
import { encodeArgs, progressiveName, TICK_BYTES } from './encode-args.ts';
import { type Ffmpeg, runFfmpeg } from './ffmpeg.ts';
import { readMovie } from './fragments.ts';
import { type HlsLayout, packageHls } from './package-hls.ts';
import { probeSource } from './probe.ts';
import { chooseRungs, type Rung } from './rungs.ts';
import { thumbnailSheet, thumbnailTrack } from './thumbnails.ts';

export interface EncodeTask {
  source: string;
  folder: string;
  preset: Preset;
  progressive: Rendition[];
  hls: Rendition[] | null;
  hlsLayout: HlsLayout;
  /** Poster and thumbnails, made with the first publish of an id. */
  extras: boolean;
  interlaced: boolean | null;
}

export interface Encoded {
  /** Measured from the encoded files; zero where an addition turned out to be larger than the source. */
  fps: number;
  duration_s: number;
  progressive: Rendition[];
  hls: Rendition[] | null;
  leftOut: string[];
}

export interface EncodeProgress {
  signal?: AbortSignal | undefined;
  /** From 0 to 1. */
  onShare?: (share: number) => void;
}

const rounded = (value: number) => Math.round(value * 1000) / 1000;

async function measureProgressive(folder: string, rung: Rung): Promise<{ seconds: number; fps: number }> {
  const { tracks } = await readMovie(join(folder, progressiveName(rung.rendition.label)));
  const video = tracks.find((track) => track.kind === 'video')!;
  const seconds = video.samples.duration / video.timescale;
  return { seconds, fps: video.samples.count / seconds };
}

/** A video that stops exactly on a sheet's edge can leave a black sheet after the last: nothing names it. */
async function removeSpareSheets(folder: string, track: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (/^thumbs-\d+\.jpg$/.test(name) && !track.includes(`${name}#`)) await rm(join(folder, name));
  }
}

export async function encodeStream(ffmpeg: Ffmpeg, task: EncodeTask, progress: EncodeProgress = {}): Promise<Encoded> {
  const { signal } = progress;
  const { folder } = task;
  const probed = await probeSource(ffmpeg, task.source, signal);
  const facts = { ...probed, interlaced: task.interlaced ?? probed.interlaced };
  const files = chooseRungs(facts, task.progressive, task.extras ? 1 : 0);
  const ladder = task.hls === null ? [] : chooseRungs(facts, task.hls).rungs;
  const { leftOut } = files;
  if (files.rungs.length + ladder.length === 0) return { fps: 0, duration_s: 0, progressive: [], hls: null, leftOut };
  const sheet = task.extras ? thumbnailSheet(facts) : null;
  await mkdir(join(folder, 'hls'), { recursive: true });
  const plan = {
    source: task.source,
    facts,
    preset: task.preset,
    progressive: files.rungs,
    hls: ladder,
    extras: sheet,
  };
  let ticks = 0;
  const onOutput = (bytes: Buffer) => {
    ticks += bytes.length / TICK_BYTES;
    progress.onShare?.(Math.min(1, ticks / Math.max(1, facts.durationS)));
  };
  await runFfmpeg(ffmpeg, encodeArgs(plan), { cwd: folder, signal, onOutput });
  const measured =
    ladder.length > 0
      ? await packageHls(folder, ladder, facts.hasAudio, task.hlsLayout)
      : await measureProgressive(folder, files.rungs.at(-1)!);
  if (ladder.length === 0) await rm(join(folder, 'hls'), { recursive: true });
  if (sheet !== null) {
    const track = thumbnailTrack(sheet, measured.seconds);
    await writeFile(join(folder, 'thumbs.vtt'), track);
    await removeSpareSheets(folder, track);
  }
  return {
    fps: rounded(measured.fps),
    duration_s: rounded(measured.seconds),
    progressive: files.rungs.map((rung) => rung.rendition),
    hls: task.hls === null ? null : ladder.map((rung) => rung.rendition),
    leftOut,
  };
}
