// The one ffmpeg command that makes everything from a source. The source is decoded once and each rung encoded once;
// the same packets go to the progressive file and to the HLS track. Pure: it only computes the arguments.
//
// The same arguments do not give the same bytes: x264 with a bounded bit rate and more than one thread never promises
// that, and one thread would make a film take several times as long. Nothing relies on it.
//
// The track of thumbnails is here too: it has to agree with how the command lays them out on their sheets.
import type { Preset } from '../manifest.ts';
import { colourTags, plainGround, TO_JPEG, toBt709 } from './colour.ts';
import type { AudioTrack } from './describe-input.ts';
import { COMPLAINT_LEVEL, sourceInput } from './ffmpeg.ts';
import { framesIn, type SourceFacts } from './probe-source.ts';
import { framesSkipped, groupFrames, type Rung, rateOf, secondFrames, sizeIn } from './rungs.ts';
import type { SourceFile } from './source-file.ts';
import { vttClock } from './timed-text.ts';

/** Raised when a change here makes other bytes from the same source and manifest. */
export const RECIPE_REVISION = 7;

export interface Sound extends AudioTrack {
  /** As viewers choose it. */
  name: string;
  channels: number;
  /** HLS's names of what else it is, such as a description for the blind. */
  characteristics: string[];
  /** A filter that brings it to the loudness that is asked for. */
  loudness: string | null;
  /** The same for its 5.1 channels. */
  surroundLoudness: string | null;
}

/** HLS offers these as 5.1, too, beside the two channels that every device can play. */
export const hasSurround = ({ channels }: Pick<Sound, 'channels'>) => channels >= 6;

export interface EncodePlan {
  source: SourceFile;
  facts: SourceFacts;
  /** One picture for each field of interlaced video, instead of one for each frame. `facts.rate` is that of the pictures. */
  everyField: boolean;
  /** Length of the picture, with the frames that are held; the sound is padded or cut to it. */
  seconds: number;
  /** How often the last frame is shown again, because the sound lasts longer. */
  heldFrames: number;
  /** The main sound first; the others are in HLS only. */
  sounds: Sound[];
  preset: Preset;
  progressive: Rung[];
  hls: Rung[];
  extras: ThumbnailSheet | null;
}

const SAMPLE_RATE = 48_000;
const POSTER_BOX = { label: '', width: 1280, height: 720, video_kbps: 0, audio_kbps: 0 };

export const progressiveName = (label: string) => `${label}.mp4`;
export const videoName = (label: string) => `hls/v-${label}.mp4`;
/** `place`: of the track among those of the stream; zero is the main one. */
export const audioName = (kbps: number, place = 0) => `hls/a-${kbps}${place === 0 ? '' : `-${place}`}.mp4`;
export const surroundName = (place: number) => `hls/a-surround${place === 0 ? '' : `-${place}`}.mp4`;
export const IFRAME_NAME = 'hls/iframes.mp4';
export const POSTER_NAME = 'poster.jpg';

/** Bytes that the command writes to its standard output for each second it has encoded. ffmpeg's own progress report is of
 * no use: it waits until every output has begun, and a sheet of thumbnails begins when it is full. */
export const TICK_BYTES = 64;

/** On every scaler by itself: what is set for a whole command does not reach filters that it names. */
const SCALER = 'flags=bicubic+accurate_rnd+full_chroma_int+bitexact';

interface Chain {
  name: string;
  filters: string[];
}

function videoChains(plan: EncodePlan, rungs: Rung[]): Chain[] {
  const { facts } = plan;
  const chains = rungs.map((rung, i): Chain => {
    const skip = framesSkipped(facts.rate, Math.min(rung.width, rung.height));
    const drop = skip === 1 ? [] : [`framestep=${skip}`];
    return {
      name: `v${i}`,
      filters: [...drop, `scale=${rung.width}:${rung.height}:${SCALER}`, 'setsar=1', 'format=yuv420p'],
    };
  });
  const second = `framestep=${secondFrames(facts.rate)}`;
  chains.push({ name: 'tick', filters: [second, 'scale=8:8', 'format=gray'] });
  const smallest = plan.hls[0];
  if (smallest !== undefined) {
    const scale = `scale=${smallest.width}:${smallest.height}:${SCALER}`;
    chains.push({ name: 'iframes', filters: [second, scale, 'setsar=1', 'format=yuv420p'] });
  }
  if (plan.extras !== null) {
    const { width, height, columns, rows, step } = plan.extras;
    const poster = sizeIn(facts, POSTER_BOX);
    const jpeg = (size: { width: number; height: number }) => `scale=${size.width}:${size.height}:${TO_JPEG}:${SCALER}`;
    chains.push({ name: 'poster', filters: [second, 'thumbnail=20', jpeg(poster), 'setsar=1', 'format=yuvj420p'] });
    const sheet = [`framestep=${step}`, jpeg({ width, height }), 'setsar=1', 'format=yuvj420p'];
    chains.push({ name: 'thumbs', filters: [...sheet, `tile=${columns}x${rows}`] });
  }
  return chains;
}

/** Fields become frames again: those of film are sorted back, those of video interpolated. */
function fieldFilters({ facts, everyField }: EncodePlan): string[] {
  if (facts.telecined) return ['fieldmatch', 'yadif=deint=interlaced', 'decimate'];
  return facts.interlaced ? [`yadif=mode=${everyField ? 1 : 0}:deint=all`] : [];
}

/** The picture at its constant rate, in BT.709; a still one is shown until the sound ends. */
function pictureFilters(plan: EncodePlan): string[] {
  const { facts } = plan;
  const fps = rateOf(facts.rate);
  const shownFrames = `trim=end_frame=${framesIn(plan.seconds, facts.rate)}`;
  if (facts.picture.kind === 'ground') return [...plainGround(facts.width, facts.height, fps), shownFrames];
  const colours = toBt709(facts.colour, Math.min(facts.width, facts.height), facts.precise);
  const constant = `fps=${facts.rate.num}/${facts.rate.den}:start_time=0`;
  if (facts.picture.kind === 'cover')
    return [...colours, 'loop=loop=-1:size=1:start=0', `setpts=N/${fps}/TB`, constant, shownFrames];
  const held = plan.heldFrames > 0 ? [`tpad=stop_mode=clone:stop=${plan.heldFrames}`] : [];
  return [...fieldFilters(plan), ...colours, constant, ...held];
}

function pictureInput({ picture }: SourceFacts): string {
  if (picture.kind === 'ground') return '';
  return picture.kind === 'cover' ? `[0:${picture.index}]` : '[0:V:0]';
}

export const SURROUND_LAYOUT = '5.1';

/** Channels that are mixed into fewer must not add up to more than those can hold. */
export const toLayout = (layout: string) =>
  `aresample=${SAMPLE_RATE}:async=1:first_pts=0:rematrix_maxval=1.0,aformat=sample_rates=${SAMPLE_RATE}:channel_layouts=${layout}`;

/** A sound as it is published: exactly as long as the picture. */
function soundFilters(layout: string, loudness: string | null, seconds: number): string[] {
  const samples = Math.round(seconds * SAMPLE_RATE);
  const adjusted = loudness === null ? [] : [loudness, `aresample=${SAMPLE_RATE}`];
  return [toLayout(layout), ...adjusted, `apad=whole_len=${samples}`, `atrim=end_sample=${samples}`];
}

const surrounds = ({ hls, sounds }: EncodePlan) =>
  hls.length === 0 ? [] : [...sounds.entries()].filter(([, sound]) => hasSurround(sound));

function filterGraph(plan: EncodePlan, rungs: Rung[], audioCopies: number): string {
  const { facts } = plan;
  const chains = videoChains(plan, rungs);
  const start = [...pictureFilters(plan), `split=${chains.length}`];
  const graph = [`${pictureInput(facts)}${start.join(',')}${chains.map((chain) => `[in_${chain.name}]`).join('')}`];
  for (const chain of chains) graph.push(`[in_${chain.name}]${chain.filters.join(',')}[${chain.name}]`);
  const groups = audioGroups(plan.hls);
  for (const [place, sound] of plan.sounds.entries()) {
    const copies = place === 0 ? audioCopies : groups.length;
    if (copies === 0) continue;
    const prefix = place === 0 ? 'a' : `s${place}_`;
    const labels = Array.from({ length: copies }, (_, i) => `[${prefix}${i}]`).join('');
    const stereo = soundFilters('stereo', sound.loudness, plan.seconds);
    graph.push(`[0:${sound.index}]${stereo.join(',')},asplit=${copies}${labels}`);
  }
  for (const [place, sound] of surrounds(plan)) {
    const six = soundFilters(SURROUND_LAYOUT, sound.surroundLoudness, plan.seconds);
    graph.push(`[0:${sound.index}]${six.join(',')}[m${place}]`);
  }
  return graph.join(';');
}

/**
 * The moov waits for the first packet, so that its edit list can say where presentation begins: after the delay of
 * reordered frames, and after the priming samples of the sound. Composition offsets below zero would do without, and
 * readers built on ffmpeg would then show the picture two frames late.
 */
const VIDEO_TRACK =
  'f=mp4:select=v:fflags=+bitexact:avoid_negative_ts=disabled:movflags=frag_keyframe+delay_moov+default_base_moof';
const AUDIO_TRACK = 'f=mp4:select=a:fflags=+bitexact:movflags=delay_moov+default_base_moof:frag_duration=1000000';
/** x264's constant quality, of which the rendition's bit rate is the limit: about VMAF 95 at the size of the rung. */
const QUALITY = '22';
/** Of the encoder's buffer, in seconds at that limit; and how full it is at first, which a short clip takes beyond the limit. */
const BUFFER_S = 1.5;
export const BUFFER_START = 'vbv-init=0.3';
/** Captions inside the picture (CEA-608) would show where the playlist says that there are none. */
const NO_CAPTIONS = ['-a53cc', '0'];
const PROGRESSIVE = 'f=mp4:fflags=+bitexact:movflags=+faststart';

function rungArgs(plan: EncodePlan, rung: Rung, i: number, audio: string | null, targets: string[]): string[] {
  const { label, video_kbps: kbps, audio_kbps } = rung.rendition;
  if (label === '') throw new Error('a rung needs a label');
  const skip = framesSkipped(plan.facts.rate, Math.min(rung.width, rung.height));
  const group = groupFrames(plan.facts.rate, skip);
  const group264 = `keyint=${group}:min-keyint=${group}:scenecut=0:open-gop=0:force-cfr=1`;
  // The fastest preset would turn these two off, and with them the High profile.
  const x264 = `${group264}:8x8dct=1:cabac=1:${BUFFER_START}`;
  const video = [
    ['-map', `[v${i}]`, '-c:v', 'libx264', '-preset', plan.preset, '-profile:v', 'high'],
    ['-crf', QUALITY, '-maxrate', `${kbps}k`, '-bufsize', `${Math.round(kbps * BUFFER_S)}k`, ...NO_CAPTIONS],
    ['-x264-params', x264, '-flags:v', '+bitexact+global_header+cgop', ...colourTags],
  ].flat();
  const sound = [
    ['-map', `[${audio}]`, '-c:a', 'aac', '-b:a', `${audio_kbps}k`],
    ['-flags:a', '+bitexact+global_header'],
  ].flat();
  const end = ['-map_metadata', '-1', '-map_chapters', '-1', '-avoid_negative_ts', 'disabled', '-f', 'tee'];
  return [...video, ...(audio === null ? [] : sound), ...end, targets.join('|')];
}

const bare = ['-map_metadata', '-1', '-map_chapters', '-1', '-fflags', '+bitexact', '-flags:v', '+bitexact'];

const trackEnd = [
  ...['-flags:a', '+bitexact+global_header', '-map_metadata', '-1', '-map_chapters', '-1', '-fflags', '+bitexact'],
  ...['-f', 'mp4', '-movflags', 'delay_moov+default_base_moof', '-frag_duration', '1000000'],
];

/** AAC needs some 64 kbit/s for each further pair of channels, and a browser's decoder takes 512 at most. */
const surroundKbps = (groups: number[]) => Math.min(512, Math.round(Math.max(...groups) * 2.5));

function surroundArgs(plan: EncodePlan): string[] {
  const rate = `${surroundKbps(audioGroups(plan.hls))}k`;
  return surrounds(plan).flatMap(([place]) => [
    ...['-map', `[m${place}]`, '-c:a', 'aac', '-b:a', rate, ...trackEnd, surroundName(place)],
  ]);
}

/** The sound in other languages: tracks of their own, so that one set of video fragments serves them all. */
function otherSoundArgs(plan: EncodePlan): string[] {
  return plan.sounds
    .slice(1)
    .flatMap((_, i) =>
      audioGroups(plan.hls).flatMap((kbps, group) => [
        ...['-map', `[s${i + 1}_${group}]`, '-c:a', 'aac', '-b:a', `${kbps}k`, ...trackEnd, audioName(kbps, i + 1)],
      ]),
    );
}

function extraArgs(plan: EncodePlan): string[] {
  const args = ['-map', '[tick]', '-c:v', 'rawvideo', '-f', 'rawvideo', '-flush_packets', '1', 'pipe:1'];
  if (plan.hls.length > 0) {
    const x264 = 'keyint=1:bframes=0:threads=1:force-cfr=1';
    args.push(
      '-map',
      '[iframes]',
      ...bare,
      '-c:v',
      'libx264',
      ...NO_CAPTIONS,
      '-preset',
      plan.preset,
      '-crf',
      '27',
      '-x264-params',
      x264,
      ...colourTags,
    );
    args.push('-f', 'mp4', '-movflags', 'frag_keyframe+empty_moov+default_base_moof', IFRAME_NAME);
  }
  if (plan.extras !== null) {
    const jpeg = ['-c:v', 'mjpeg', '-threads', '1', '-f', 'image2'];
    args.push('-map', '[poster]', ...bare, ...jpeg, '-frames:v', '1', '-q:v', '3', '-update', '1', POSTER_NAME);
    args.push('-map', '[thumbs]', ...bare, ...jpeg, '-q:v', '5', 'thumbs-%03d.jpg');
  }
  return args;
}

/** Every rung once, whether it becomes a file, part of the ladder or both; smallest first. */
function allRungs(plan: EncodePlan): Rung[] {
  const byLabel = new Map([...plan.hls, ...plan.progressive].map((rung) => [rung.rendition.label, rung]));
  return [...byLabel.values()].sort((a, b) => a.width * a.height - b.width * b.height);
}

/** Arguments for ffmpeg, which has to run in the target folder; `hls/` must exist there. */
export function encodeArgs(plan: EncodePlan): string[] {
  const rungs = allRungs(plan);
  const groups = new Set<number>();
  let audioCopies = 0;
  const outputs = rungs.flatMap((rung, i) => {
    const { label, audio_kbps } = rung.rendition;
    const targets: string[] = [];
    const isFile = plan.progressive.some((each) => each.rendition.label === label);
    if (isFile) targets.push(`[${PROGRESSIVE}]${progressiveName(label)}`);
    let needsAudio = isFile;
    if (plan.hls.some((each) => each.rendition.label === label)) {
      targets.push(`[${VIDEO_TRACK}]${videoName(label)}`);
      if (plan.sounds.length > 0 && !groups.has(audio_kbps)) {
        groups.add(audio_kbps);
        targets.push(`[${AUDIO_TRACK}]${audioName(audio_kbps)}`);
        needsAudio = true;
      }
    }
    const audio = plan.sounds.length > 0 && needsAudio ? `a${audioCopies++}` : null;
    return rungArgs(plan, rung, i, audio, targets);
  });
  const graph = filterGraph(plan, rungs, audioCopies);
  return [
    '-y',
    ...COMPLAINT_LEVEL,
    // A picture or a sound that changes its format would start the filters anew, and all that counts frames with them.
    ...['-reinit_filter', '0'],
    ...sourceInput(plan.source),
    '-filter_complex',
    graph,
    ...outputs,
    ...otherSoundArgs(plan),
    ...surroundArgs(plan),
    ...extraArgs(plan),
  ];
}

export function audioGroups(rungs: Rung[]): number[] {
  return [...new Set(rungs.map((rung) => rung.rendition.audio_kbps))].sort((a, b) => a - b);
}

const THUMBNAIL_BOX = { label: '', width: 192, height: 108, video_kbps: 0, audio_kbps: 0 };
const MOST_THUMBNAILS = 400;

/** How the thumbnails lie on their sheets. */
interface ThumbnailSheet {
  width: number;
  height: number;
  columns: number;
  rows: number;
  /** Source frames from one thumbnail to the next. */
  step: number;
  seconds: number;
}

const sheetName = (number: number) => `thumbs-${String(number).padStart(3, '0')}.jpg`;

export function thumbnailSheet(facts: SourceFacts, durationS: number): ThumbnailSheet {
  const every = Math.max(1, Math.ceil(durationS / MOST_THUMBNAILS));
  const step = secondFrames(facts.rate) * every;
  const seconds = step / rateOf(facts.rate);
  const count = Math.max(1, Math.ceil(durationS / seconds));
  const columns = Math.min(10, count);
  return { ...sizeIn(facts, THUMBNAIL_BOX), columns, rows: Math.min(10, Math.ceil(count / columns)), step, seconds };
}

/** WebVTT cues that each name a part of a sheet, as players read them. */
export function thumbnailTrack(sheet: ThumbnailSheet, durationS: number): string {
  const count = Math.max(1, Math.ceil(durationS / sheet.seconds - 0.001));
  const perSheet = sheet.columns * sheet.rows;
  const cues = Array.from({ length: count }, (_, i) => {
    const place = i % perSheet;
    const x = (place % sheet.columns) * sheet.width;
    const y = Math.floor(place / sheet.columns) * sheet.height;
    const to = Math.min((i + 1) * sheet.seconds, durationS);
    const file = sheetName(Math.floor(i / perSheet) + 1);
    return `${vttClock(i * sheet.seconds)} --> ${vttClock(to)}\n${file}#xywh=${x},${y},${sheet.width},${sheet.height}\n`;
  });
  return `WEBVTT\n\n${cues.join('\n')}`;
}
