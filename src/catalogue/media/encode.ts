// One source → a folder with everything that is published of it. The folder is complete when this returns: what ffmpeg
// wrote is read back, because ffmpeg can end with code 0 although a file is not whole.
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CatalogueError } from '../catalogue-error.ts';
import type { Deinterlace, Preset, Rendition } from '../manifest.ts';
import { MediaFormatError } from './boxes.ts';
import type { SourceTrack } from './describe-input.ts';
import {
  audioGroups,
  audioName,
  type EncodePlan,
  encodeArgs,
  hasSurround,
  progressiveName,
  type Sound,
  SURROUND_LAYOUT,
  surroundName,
  TICK_BYTES,
  thumbnailSheet,
  thumbnailTrack,
  videoName,
} from './encode-args.ts';
import { type Complaint, type Ffmpeg, runFfmpeg } from './ffmpeg.ts';
import { readFragments, readMovie } from './fragments.ts';
import { type CaptionTrack, type HlsLayout, packageHls } from './package-hls.ts';
import {
  framesIn,
  type PacketTimes,
  type ProbedSource,
  probeSource,
  type SourceFacts,
  withRate,
} from './probe-source.ts';
import { chooseRungs, type Rung, rateOf } from './rungs.ts';
import type { SourceFile } from './source-file.ts';
import { chapterCues, formatVtt, parseChapters } from './timed-text.ts';
import { chooseSounds, gatherCaptions, languageName, loudnessFilter, type WrittenCaption } from './tracks.ts';

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
  /** Languages of the sound, the main one first; null: every track. */
  audio: string[] | null;
  captions: WrittenCaption[];
  /** The text of a side file; null: those of the source. */
  chapters: string | null;
  /** In LUFS; null: as loud as the source. */
  loudness: number | null;
}

export interface Encoded {
  /** Measured from the encoded files; zero where an addition turned out to be larger than the source. */
  fps: number;
  duration_s: number;
  progressive: Rendition[];
  hls: Rendition[] | null;
  leftOut: string[];
  captions: PublishedCaption[];
  /** Of the largest picture; zero as above. */
  width: number;
  height: number;
  /** Only where viewers have a choice, or the language is known. */
  audio: { language: string | null; name: string }[];
  chapters: boolean;
}

/** Of a caption file below the stream's folder. */
export interface PublishedCaption {
  language: string;
  name: string;
  default: boolean;
  forced: boolean;
  file: string;
}

export const CHAPTERS_NAME = 'chapters.vtt';

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

async function probeFor(ffmpeg: Ffmpeg, task: EncodeTask, signal?: AbortSignal): Promise<ProbedSource> {
  const probed = await probeSource(ffmpeg, task.source, signal);
  return task.interlaced === null
    ? probed
    : { ...probed, interlaced: task.interlaced, telecined: probed.telecined && task.interlaced };
}

/** Encoders pad sound to whole frames of its own; more than this is sound that somebody recorded. */
const SOUND_PADDING_S = 0.1;
const LONGEST_HOLD_S = 4 * 3600;

const soundEnd = (sounds: Sound[], packets: PacketTimes) =>
  Math.max(0, ...sounds.map(({ index }) => packets.endsS.get(index) ?? 0));

/** How often the last frame has to be shown again until the sound ends. */
function heldFrames(source: SourceFile, facts: SourceFacts, sounds: Sound[], packets: PacketTimes): number {
  const soundEndS = soundEnd(sounds, packets);
  const moreS = soundEndS - packets.videoEndS;
  if (moreS <= SOUND_PADDING_S) return 0;
  if (moreS > LONGEST_HOLD_S)
    throw new CatalogueError(
      `${source.name}: its sound goes on for ${Math.round(moreS / 60)} minutes after its picture, and the last frame is held for ` +
        `${LONGEST_HOLD_S / 60} at most; cut its sound, or give it a longer picture`,
    );
  return framesIn(soundEndS, facts.rate) - framesIn(packets.videoEndS, facts.rate);
}

/** A small file can state any time for its last frame, and every second until then has to be encoded. */
const LONGEST_STREAM_S = 48 * 3600;

function checkLength({ name }: SourceFile, seconds: number): void {
  if (seconds <= LONGEST_STREAM_S) return;
  const hours = (value: number) => `${Math.round(value / 3600)} hours`;
  throw new CatalogueError(`${name} lasts ${hours(seconds)}, a stream ${hours(LONGEST_STREAM_S)} at most; cut it up`);
}

/** What a source has and its stream will not have. */
function notCarriedOver({ tracks, captionsInside, picture: shown }: SourceFacts, carried: number[]): string[] {
  const isPicture = (track: SourceTrack) =>
    shown.kind === 'cover'
      ? track.index === shown.index
      : track.kind === 'video' && !track.roles.includes('attached pic');
  const picture = tracks.find(isPicture);
  const others = tracks.filter((track) => track !== picture && !carried.includes(track.index));
  const named = others.map(({ index, kind, codec, language }) => {
    const what = [codec, ...(language === null || language === 'und' ? [] : [language])].join(', ');
    return `${kind} track ${index} (${what})`;
  });
  return [...named, ...(captionsInside ? ['captions inside the picture (CEA-608)'] : [])];
}

/** A smaller rung that takes nearly as many bits as a larger one shows a worse picture to the same viewers. */
const WORTH_ITS_BITS = 0.85;

/** Takes rungs that add nothing out of the ladder, with the tracks that only they need; gives the others. */
async function thinLadder(folder: string, ladder: Rung[], sounds: Sound[]): Promise<Rung[]> {
  const kept: Rung[] = [];
  let larger = Number.POSITIVE_INFINITY;
  for (const rung of ladder.toReversed()) {
    const { size } = await stat(join(folder, videoName(rung.rendition.label)));
    if (size > larger * WORTH_ITS_BITS) continue;
    kept.unshift(rung);
    larger = size;
  }
  const left = ladder.filter((rung) => !kept.includes(rung));
  for (const rung of left) await rm(join(folder, videoName(rung.rendition.label)));
  const groups = audioGroups(kept);
  for (const kbps of audioGroups(left))
    if (!groups.includes(kbps))
      for (const place of sounds.keys()) await rm(join(folder, audioName(kbps, place)), { force: true });
  return kept;
}

interface EncodeRun {
  ffmpeg: Ffmpeg;
  folder: string;
  judge: SourceJudge;
  progress: EncodeProgress;
}

/**
 * Runs the encode. The sound has to know beforehand how long the picture will be; where the packets promised another length
 * than could be decoded, everything is encoded once more with the length that came out.
 */
async function encode(run: EncodeRun, plan: EncodePlan): Promise<MeasuredPicture> {
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
  if (plan.sounds.length === 0 || Math.abs(measured.seconds - plan.seconds) < 1.5 * frameS) return measured;
  judge.checkDecoded(measured.seconds);
  return encode(run, { ...plan, seconds: measured.seconds });
}

/** A file that ffmpeg wrote and that cannot be read back was cut short, whatever ffmpeg said. */
async function readBack<T>(source: SourceFile, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof MediaFormatError)) throw error;
    throw new CatalogueError(`what ffmpeg made of ${source.name} is not whole: ${error.message}; is the disk full?`);
  }
}

export async function encodeStream(ffmpeg: Ffmpeg, task: EncodeTask, progress: EncodeProgress = {}): Promise<Encoded> {
  const { signal } = progress;
  const { folder, source } = task;
  const probed = await probeFor(ffmpeg, task, signal);
  const files = chooseRungs(probed, task.progressive, task.extras ? 1 : 0);
  const ladder = task.hls === null ? [] : chooseRungs(probed, task.hls).rungs;
  const { leftOut } = files;
  const nothing = { captions: [], audio: [], chapters: false };
  if (files.rungs.length + ladder.length === 0)
    return { fps: 0, duration_s: 0, width: 0, height: 0, progressive: [], hls: null, leftOut, ...nothing };
  const judge = new SourceJudge(source.name, task.allowDamaged);
  const isStill = probed.picture.kind !== 'video';
  const { packets } = probed;
  judge.checkSource(probed);
  const everyField = probed.interlaced && task.deinterlace === 'double';
  const facts = withRate(probed, everyField);
  const { language, audio: languages } = task;
  const chosen = chooseSounds(source, probed, { languages, language, all: ladder.length > 0 });
  const sounds = await toLoudness(ffmpeg, task, chosen, signal);
  const held = isStill ? 0 : heldFrames(source, facts, sounds, packets);
  // A picture that stands still is shown to the last moment of the sound.
  const frames = isStill
    ? Math.ceil(soundEnd(sounds, packets) * rateOf(facts.rate))
    : framesIn(judge.videoEndS, facts.rate);
  const seconds = (frames + held) / rateOf(facts.rate);
  checkLength(source, seconds);
  const sheet = task.extras ? thumbnailSheet(facts, seconds) : null;
  await mkdir(join(folder, 'hls'), { recursive: true });
  const outputs = { progressive: files.rungs, hls: ladder, extras: sheet };
  const plan: EncodePlan = {
    source,
    facts,
    everyField,
    seconds,
    heldFrames: held,
    sounds,
    preset: task.preset,
    ...outputs,
  };
  const { captions, carried } = await gatherCaptions(ffmpeg, source, probed, task.captions, { folder, signal });
  let shown = ladder;
  const measured = await readBack(source, async () => {
    const picture = await encode({ ffmpeg, folder, judge, progress }, plan);
    await checkOutputs(folder, plan, picture);
    shown = await thinLadder(folder, ladder, sounds);
    if (shown.length > 0) await packageHls(folder, { rungs: shown, sounds, captions }, task.hlsLayout);
    else await rm(join(folder, 'hls'), { recursive: true });
    return picture;
  });
  judge.checkDecoded(measured.seconds);
  const chapters = await writeChapters(folder, task.chapters, probed, measured.seconds);
  const lost = notCarriedOver(facts, [...sounds.map(({ index }) => index), ...carried]);
  if (lost.length > 0) progress.onNote?.(`not carried over: ${lost.join('; ')}`);
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
    hls: task.hls === null ? null : shown.map((rung) => rung.rendition),
    leftOut,
    captions: await writeCaptionFiles(folder, captions),
    ...sizeOf([...files.rungs, ...shown]),
    audio: publishedSounds(sounds),
    chapters,
  };
}

async function toLoudness(
  ffmpeg: Ffmpeg,
  { source, loudness, hls }: EncodeTask,
  sounds: Sound[],
  signal?: AbortSignal,
): Promise<Sound[]> {
  if (loudness === null) return sounds;
  const adjusted: Sound[] = [];
  for (const sound of sounds) {
    const filterFor = (layout: string) => loudnessFilter(ffmpeg, source, sound, { lufs: loudness, layout }, signal);
    const surroundLoudness = hls !== null && hasSurround(sound) ? await filterFor(SURROUND_LAYOUT) : null;
    adjusted.push({ ...sound, loudness: await filterFor('stereo'), surroundLoudness });
  }
  return adjusted;
}

/** The whole of each track, for players that do not use HLS. */
async function writeCaptionFiles(folder: string, captions: CaptionTrack[]): Promise<PublishedCaption[]> {
  const used = new Map<string, number>();
  const written: PublishedCaption[] = [];
  if (captions.length > 0) await mkdir(join(folder, 'captions'), { recursive: true });
  for (const { cues, language, name, isDefault, isForced } of captions) {
    const count = (used.get(language) ?? 0) + 1;
    used.set(language, count);
    const file = `captions/${language.toLowerCase()}${count === 1 ? '' : `-${count}`}.vtt`;
    await writeFile(join(folder, file), formatVtt(cues));
    written.push({ language, name, default: isDefault, forced: isForced, file });
  }
  return written;
}

async function writeChapters(
  folder: string,
  text: string | null,
  { chapters }: ProbedSource,
  durationS: number,
): Promise<boolean> {
  const cues = chapterCues(text === null ? chapters : parseChapters(text), durationS);
  if (cues.length > 0) await writeFile(join(folder, CHAPTERS_NAME), formatVtt(cues));
  return cues.length > 0;
}

function sizeOf(rungs: Rung[]): { width: number; height: number } {
  const { width, height } = rungs.reduce((best, rung) => (rung.width > best.width ? rung : best));
  return { width, height };
}

function publishedSounds(sounds: Sound[]): Encoded['audio'] {
  if (sounds.length > 1) return sounds.map(({ language, name }) => ({ language, name }));
  const language = sounds[0]?.language ?? null;
  return language === null ? [] : [{ language, name: languageName(language) }];
}

interface MeasuredPicture {
  seconds: number;
  fps: number;
}

async function measureTrack(folder: string, name: string): Promise<MeasuredPicture> {
  const { fragments, track } = await readFragments(join(folder, name));
  const seconds = fragments.reduce((sum, fragment) => sum + fragment.duration, 0) / track.timescale;
  const frames = fragments.reduce((sum, fragment) => sum + fragment.sampleCount, 0);
  if (frames === 0) throw new MediaFormatError(`${name} has no frame`);
  return { seconds, fps: frames / seconds };
}

async function measureMovie(
  folder: string,
  name: string,
  hasAudio: boolean,
): Promise<MeasuredPicture & { soundS: number }> {
  const { tracks, faststart } = await readMovie(join(folder, name));
  const lengthOf = (kind: string) => {
    const track = tracks.find((each) => each.kind === kind);
    return track === undefined ? 0 : track.samples.duration / track.timescale;
  };
  const seconds = lengthOf('video');
  if (!faststart || seconds === 0 || (hasAudio && lengthOf('audio') === 0))
    throw new MediaFormatError(`${name} lacks a track`);
  const frames = tracks.find((each) => each.kind === 'video')!.samples.count;
  return { seconds, fps: frames / seconds, soundS: lengthOf('audio') };
}

/** Length and rate of the largest rung. */
function measurePicture(folder: string, plan: EncodePlan): Promise<MeasuredPicture> {
  const top = plan.hls.at(-1);
  if (top !== undefined) return measureTrack(folder, videoName(top.rendition.label));
  return measureMovie(folder, progressiveName(plan.progressive.at(-1)!.rendition.label), plan.sounds.length > 0);
}

/** A frame of sound at each end of a track: what the encoder adds before, and fills up after. */
const SOUND_SLACK_S = (2 * 1024) / 48_000;

/** Throws MediaFormatError where a file lacks part of the picture or of the sound. */
async function checkOutputs(folder: string, plan: EncodePlan, picture: MeasuredPicture): Promise<void> {
  const slack = 2 / rateOf(plan.facts.rate) + SOUND_SLACK_S;
  const check = (name: string, seconds: number) => {
    if (Math.abs(seconds - picture.seconds) <= slack) return;
    throw new MediaFormatError(`${name} lasts ${seconds.toFixed(3)} s, the picture ${picture.seconds.toFixed(3)} s`);
  };
  const hasAudio = plan.sounds.length > 0;
  for (const { rendition } of plan.progressive) {
    const name = progressiveName(rendition.label);
    const { seconds, soundS } = await measureMovie(folder, name, hasAudio);
    check(name, seconds);
    if (hasAudio) check(`the sound of ${name}`, soundS);
  }
  const tracks = plan.hls.map((rung) => videoName(rung.rendition.label));
  for (const kbps of audioGroups(plan.hls)) for (const place of plan.sounds.keys()) tracks.push(audioName(kbps, place));
  for (const [place, sound] of plan.sounds.entries())
    if (plan.hls.length > 0 && hasSurround(sound)) tracks.push(surroundName(place));
  for (const name of tracks) check(name, (await measureTrack(folder, name)).seconds);
}

/** Headers round, and tracks rarely end together: less than this is no loss. */
const slackOf = (seconds: number) => 0.5 + seconds * 0.005;
const MOST_NAMED = 5;

/**
 * Whether a source may be published. A damaged one may, where the manifest allows it; one whose picture or sound changes its
 * format on the way may not, because what is made of it would be wrong.
 */
class SourceJudge {
  #name: string;
  #allowDamaged: boolean;
  #times: PacketTimes | null = null;
  /** Damage that was found and is allowed. */
  readonly allowed: string[] = [];

  constructor(name: string, allowDamaged: boolean) {
    this.#name = name;
    this.#allowDamaged = allowDamaged;
  }

  get videoEndS(): number {
    return this.#times?.videoEndS ?? 0;
  }

  onComplaint = (complaint: Complaint): CatalogueError | null => {
    if (complaint.kind === 'damage') return this.#damage(complaint.text);
    const what =
      complaint.kind === 'picture_change' ? 'its picture changes its size' : 'its sound changes its channels';
    return new CatalogueError(`${this.#name}: ${what} in mid-stream; convert it to one format first`);
  };

  /** What ffmpeg complained of while it read the source, and what the container promises against the packets it has. */
  checkSource({ complaints, packets, declaredS }: ProbedSource): void {
    for (const complaint of complaints) {
      const error = this.onComplaint(complaint);
      if (error !== null) throw error;
    }
    this.#times = packets;
    if (declaredS === null || packets.endS >= declaredS - slackOf(declaredS)) return;
    this.#throwDamage(`it ends after ${packets.endS.toFixed(1)} of ${declaredS.toFixed(1)} s`);
  }

  /** The packets it has against what could be decoded of them. */
  checkDecoded(seconds: number): void {
    if (seconds >= this.videoEndS - slackOf(this.videoEndS)) return;
    this.#throwDamage(`only ${seconds.toFixed(1)} of ${this.videoEndS.toFixed(1)} s can be decoded`);
  }

  #throwDamage(text: string): void {
    const error = this.#damage(text);
    if (error !== null) throw error;
  }

  #damage(text: string): CatalogueError | null {
    if (!this.#allowDamaged)
      return new CatalogueError(`${this.#name} is damaged: ${text} (allow_damaged: yes publishes what can be decoded)`);
    if (this.allowed.length < MOST_NAMED && !this.allowed.includes(text)) this.allowed.push(text);
    return null;
  }
}
