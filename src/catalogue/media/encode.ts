// One source → a folder with everything that is published of it. The folder is complete when this returns.
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CatalogueError } from '../fault.ts';
import type { Deinterlace, Preset, Rendition } from '../manifest.ts';
import { MediaFormatError } from './boxes.ts';
import { type EncodePlan, encodeArgs, TICK_BYTES } from './encode-args.ts';
import { type Ffmpeg, runFfmpeg } from './ffmpeg.ts';
import { checkOutputs, type Measured, measurePicture } from './measure.ts';
import { type HlsLayout, packageHls } from './package-hls.ts';
import { chooseRungs } from './rungs.ts';
import { SourceJudge } from './source/judge.ts';
import { readPackets } from './source/packets.ts';
import { framesIn, probeSource, type SourceFacts } from './source/probe.ts';
import type { SourceFile } from './source/source-file.ts';
import { thumbnailSheet, thumbnailTrack } from './thumbnails.ts';
import { fieldRate, rateOf } from './timing.ts';

export interface EncodeTask {
  source: SourceFile;
  folder: string;
  preset: Preset;
  progressive: Rendition[];
  hls: Rendition[] | null;
  hlsLayout: HlsLayout;
  /** Poster and thumbnails, made with the first publish of an id. */
  extras: boolean;
  interlaced: boolean | null;
  deinterlace: Deinterlace;
  /** Language of the sound, where the source does not say or is wrong. */
  language: string | null;
  /** Publish what can be decoded of a damaged source. */
  allowDamaged: boolean;
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
  onNote?: (text: string) => void;
}

const rounded = (value: number) => Math.round(value * 1000) / 1000;

/** A video that stops exactly on a sheet's edge can leave a black sheet after the last: nothing names it. */
async function removeSpareSheets(folder: string, track: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (/^thumbs-\d+\.jpg$/.test(name) && !track.includes(`${name}#`)) await rm(join(folder, name));
  }
}

async function probeFor(ffmpeg: Ffmpeg, task: EncodeTask, signal?: AbortSignal): Promise<SourceFacts> {
  const probed = await probeSource(ffmpeg, task.source, signal);
  const interlaced = task.interlaced ?? probed.interlaced;
  const everyField = interlaced && task.deinterlace === 'double';
  return { ...probed, interlaced, rate: everyField ? fieldRate(probed.rate) : probed.rate };
}

interface Run {
  ffmpeg: Ffmpeg;
  folder: string;
  judge: SourceJudge;
  progress: EncodeProgress;
}

/**
 * Runs the encode. The sound has to know beforehand how long the picture will be; where the packets promised another length
 * than could be decoded, everything is encoded once more with the length that came out.
 */
async function encode(run: Run, plan: EncodePlan): Promise<Measured> {
  const { ffmpeg, folder, judge, progress } = run;
  let ticks = 0;
  const onOutput = (bytes: Buffer) => {
    ticks += bytes.length / TICK_BYTES;
    progress.onShare?.(Math.min(1, ticks / Math.max(1, plan.seconds)));
  };
  const { signal } = progress;
  const { source } = plan;
  await runFfmpeg(ffmpeg, encodeArgs(plan), { cwd: folder, signal, source, onOutput, onComplaint: judge.onComplaint });
  const measured = await measurePicture(folder, plan);
  const frameS = 1 / rateOf(plan.facts.rate);
  if (plan.facts.audio === null || Math.abs(measured.seconds - plan.seconds) < 1.5 * frameS) return measured;
  judge.checkDecoded(measured.seconds);
  return encode(run, { ...plan, seconds: measured.seconds });
}

/** A file that ffmpeg wrote and that cannot be read back was cut short, whatever ffmpeg said. */
async function readBack<T>(source: SourceFile, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof MediaFormatError)) throw error;
    throw new CatalogueError(`what ffmpeg made of ${source.path} is not whole: ${error.message}; is the disk full?`);
  }
}

export async function encodeStream(ffmpeg: Ffmpeg, task: EncodeTask, progress: EncodeProgress = {}): Promise<Encoded> {
  const { signal } = progress;
  const { folder, source } = task;
  const facts = await probeFor(ffmpeg, task, signal);
  const files = chooseRungs(facts, task.progressive, task.extras ? 1 : 0);
  const ladder = task.hls === null ? [] : chooseRungs(facts, task.hls).rungs;
  const { leftOut } = files;
  if (files.rungs.length + ladder.length === 0) return { fps: 0, duration_s: 0, progressive: [], hls: null, leftOut };
  const judge = new SourceJudge(source.path, task.allowDamaged);
  judge.checkPackets(await readPackets(ffmpeg, source, { signal, onComplaint: judge.onComplaint }), facts.declaredS);
  const seconds = framesIn(judge.videoEndS, facts.rate) / rateOf(facts.rate);
  const sheet = task.extras ? thumbnailSheet(facts, seconds) : null;
  await mkdir(join(folder, 'hls'), { recursive: true });
  const everyField = facts.interlaced && task.deinterlace === 'double';
  const outputs = { progressive: files.rungs, hls: ladder, extras: sheet };
  const plan: EncodePlan = { source, facts, everyField, seconds, preset: task.preset, ...outputs };
  const measured = await readBack(source, async () => {
    const picture = await encode({ ffmpeg, folder, judge, progress }, plan);
    await checkOutputs(folder, plan, picture);
    const language = task.language ?? facts.audio?.language ?? null;
    const sound = facts.audio === null ? null : { language };
    if (ladder.length > 0) await packageHls(folder, ladder, sound, task.hlsLayout);
    else await rm(join(folder, 'hls'), { recursive: true });
    return picture;
  });
  judge.checkDecoded(measured.seconds);
  if (judge.allowed.length > 0) progress.onNote?.(`published although damaged: ${judge.allowed.join('; ')}`);
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
