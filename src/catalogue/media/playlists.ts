// From fragments to HLS playlists (RFC 8216 and its successor draft, and Apple's authoring rules): which fragments make a
// segment, how long it is, how many bits a second a track has, and the text that says so. Pure.
import type { FragmentedFile } from './fragments.ts';

export interface Segment {
  offset: number;
  size: number;
  seconds: number;
}

export const TARGET_SECONDS = 6;
/** EXTINF, rounded, may not exceed the target. */
const LONGEST_SECONDS = TARGET_SECONDS + 0.49;

function join(file: FragmentedFile, from: number, to: number): Segment {
  const fragments = file.fragments.slice(from, to);
  const first = fragments[0]!;
  const last = fragments.at(-1)!;
  const ticks = fragments.reduce((sum, fragment) => sum + fragment.duration, 0);
  return { offset: first.offset, size: last.offset + last.size - first.offset, seconds: ticks / file.track.timescale };
}

function cut(file: FragmentedFile, endsHere: (end: number, seconds: number, next: number) => boolean): Segment[] {
  const { fragments, track } = file;
  const segments: Segment[] = [];
  let from = 0;
  let seconds = 0;
  let end = 0;
  for (const [i, fragment] of fragments.entries()) {
    seconds += fragment.duration / track.timescale;
    end += fragment.duration / track.timescale;
    const next = (fragments[i + 1]?.duration ?? 0) / track.timescale;
    if (i < fragments.length - 1 && !endsHere(end, seconds, next)) continue;
    segments.push(join(file, from, i + 1));
    from = i + 1;
    seconds = 0;
  }
  return segments;
}

/** Video: as many whole groups of pictures as fit into the target. */
export function videoSegments(file: FragmentedFile): Segment[] {
  return cut(file, (_end, seconds, next) => seconds + next > LONGEST_SECONDS);
}

/** Sound: cut where the video is cut, or up to a second before; what outlasts the video belongs to the last segment. */
export function audioSegments(file: FragmentedFile, video: Segment[]): Segment[] {
  const ends: number[] = [];
  for (const segment of video) ends.push((ends.at(-1) ?? 0) + segment.seconds);
  return cut(file, (end, seconds, next) => {
    if (seconds + next > LONGEST_SECONDS) return true;
    return ends.slice(0, -1).some((at) => end <= at + 0.02 && end + next > at + 0.02);
  });
}

/** One segment for each I-frame; the last one lasts no longer than the video does. */
export function iframeSegments(file: FragmentedFile, videoSeconds: number): Segment[] {
  let start = 0;
  return file.fragments.map((_, i) => {
    const segment = join(file, i, i + 1);
    const seconds = Math.min(segment.seconds, Math.max(0.001, videoSeconds - start));
    start += segment.seconds;
    return { ...segment, seconds };
  });
}

export const totalSeconds = (segments: Segment[]) => segments.reduce((sum, segment) => sum + segment.seconds, 0);

export interface BitRates {
  peak: number;
  average: number;
}

/**
 * Bits a second as RFC 8216 (4.1) counts them: the peak is the largest rate of any run of neighbours that lasts between
 * 0.5 and 1.5 times the target; a stream shorter than that is its own peak.
 */
export function bitRates(segments: Pick<Segment, 'size' | 'seconds'>[]): BitRates {
  const bits = segments.reduce((sum, segment) => sum + segment.size * 8, 0);
  const seconds = segments.reduce((sum, segment) => sum + segment.seconds, 0);
  const average = seconds > 0 ? bits / seconds : 0;
  let peak = average;
  for (let from = 0; from < segments.length; from++) {
    let runBits = 0;
    let runSeconds = 0;
    for (let to = from; to < segments.length && runSeconds <= 1.5 * TARGET_SECONDS; to++) {
      runBits += segments[to]!.size * 8;
      runSeconds += segments[to]!.seconds;
      if (runSeconds < 0.5 * TARGET_SECONDS || runSeconds > 1.5 * TARGET_SECONDS) continue;
      peak = Math.max(peak, runBits / runSeconds);
    }
  }
  return { peak: Math.ceil(peak), average: Math.ceil(average) };
}

/** Where the bytes of a track lie: one file with ranges, or an init file and one file for each segment. */
export type TrackLayout =
  | { kind: 'ranges'; file: string; initSize: number }
  | { kind: 'segments'; init: string; segmentFile: (index: number) => string };

function segmentLines(segment: Segment, i: number, layout: TrackLayout): string[] {
  const info = `#EXTINF:${segment.seconds.toFixed(5)},`;
  if (layout.kind === 'segments') return [info, layout.segmentFile(i)];
  return [info, `#EXT-X-BYTERANGE:${segment.size}@${segment.offset}`, layout.file];
}

/** Captions have no header of their own: each segment is a text that says where its clock begins. */
export function captionPlaylist(lengths: number[], segmentFile: (index: number) => string): string {
  const longest = Math.max(...lengths.map(Math.round), TARGET_SECONDS);
  return [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    `#EXT-X-TARGETDURATION:${longest}`,
    '#EXT-X-MEDIA-SEQUENCE:0',
    '#EXT-X-PLAYLIST-TYPE:VOD',
    ...lengths.flatMap((seconds, i) => [`#EXTINF:${seconds.toFixed(5)},`, segmentFile(i)]),
    '#EXT-X-ENDLIST',
    '',
  ].join('\n');
}

export function mediaPlaylist(segments: Segment[], layout: TrackLayout, iframesOnly = false): string {
  const longest = Math.max(...segments.map((segment) => Math.round(segment.seconds)), 1);
  const map =
    layout.kind === 'ranges' ? `URI="${layout.file}",BYTERANGE="${layout.initSize}@0"` : `URI="${layout.init}"`;
  return [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    `#EXT-X-TARGETDURATION:${iframesOnly ? longest : Math.max(TARGET_SECONDS, longest)}`,
    '#EXT-X-MEDIA-SEQUENCE:0',
    '#EXT-X-PLAYLIST-TYPE:VOD',
    ...(iframesOnly ? ['#EXT-X-I-FRAMES-ONLY'] : ['#EXT-X-INDEPENDENT-SEGMENTS']),
    `#EXT-X-MAP:${map}`,
    ...segments.flatMap((segment, i) => segmentLines(segment, i, layout)),
    '#EXT-X-ENDLIST',
    '',
  ].join('\n');
}

export interface Variant {
  uri: string;
  rates: BitRates;
  codecs: string[];
  width: number;
  height: number;
  fps: number;
  audioGroup: string | null;
  /** The same picture as another variant, with sound in more than two channels. */
  isSurround: boolean;
}

export interface AudioRendition {
  group: string;
  uri: string;
  channels: number;
  /** Tag of RFC 5646; null where it is not known. */
  language: string | null;
  name: string;
  isDefault: boolean;
  characteristics: string[];
}

export interface CaptionRendition {
  uri: string;
  language: string;
  name: string;
  isDefault: boolean;
  isForced: boolean;
  characteristics: string[];
}

interface IframeVariant {
  uri: string;
  rates: BitRates;
  codec: string;
  width: number;
  height: number;
}

/** Apple asks that the variant a player tries first, the first in the list, be one of about two megabits. */
const FIRST_BITS = 2_000_000;

/** That one, then the others, then those with more channels: every device can play what comes first. */
function startFirst(variants: Variant[]): Variant[] {
  const byRate = variants.toSorted((a, b) => a.rates.peak - b.rates.peak);
  const sorted = byRate.filter(({ isSurround }) => !isSurround);
  const off = (variant: Variant) => Math.abs(Math.log(variant.rates.average / FIRST_BITS));
  const first = sorted.reduce((best, variant) => (off(variant) < off(best) ? variant : best));
  const surround = byRate.filter(({ isSurround }) => isSurround);
  return [first, ...sorted.filter((variant) => variant !== first), ...surround];
}

const rateAttributes = (rates: BitRates) => `BANDWIDTH=${rates.peak},AVERAGE-BANDWIDTH=${rates.average}`;

const CAPTION_GROUP = 'captions';

function variantLines(variant: Variant, hasCaptions: boolean): string[] {
  const attributes = [
    rateAttributes(variant.rates),
    `CODECS="${variant.codecs.join(',')}"`,
    `RESOLUTION=${variant.width}x${variant.height}`,
    `FRAME-RATE=${variant.fps.toFixed(3)}`,
    'VIDEO-RANGE=SDR',
    ...(variant.audioGroup === null ? [] : [`AUDIO="${variant.audioGroup}"`]),
    ...(hasCaptions ? [`SUBTITLES="${CAPTION_GROUP}"`] : []),
    'CLOSED-CAPTIONS=NONE',
  ];
  return [`#EXT-X-STREAM-INF:${attributes.join(',')}`, variant.uri];
}

const yesNo = (value: boolean) => (value ? 'YES' : 'NO');
const characteristicsOf = (names: string[]) => (names.length === 0 ? '' : `CHARACTERISTICS="${names.join(',')}",`);

/** A comment on the film, for example: only for those who choose it. */
export const AUXILIARY = 'public.auxiliary-content';

function audioLine(audio: AudioRendition): string {
  const { group, name, isDefault, language, characteristics, channels, uri } = audio;
  const mayBeSelected = isDefault || !characteristics.includes(AUXILIARY);
  return (
    `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="${name}",DEFAULT=${yesNo(isDefault)},AUTOSELECT=${yesNo(mayBeSelected)},` +
    `${language === null ? '' : `LANGUAGE="${language}",`}${characteristicsOf(characteristics)}CHANNELS="${channels}",URI="${uri}"`
  );
}

function captionLine({ name, language, isDefault, isForced, characteristics, uri }: CaptionRendition): string {
  return (
    `#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="${CAPTION_GROUP}",NAME="${name}",LANGUAGE="${language}",` +
    `DEFAULT=${yesNo(isDefault)},AUTOSELECT=YES,FORCED=${yesNo(isForced)},${characteristicsOf(characteristics)}URI="${uri}"`
  );
}

export function multivariantPlaylist(
  variants: Variant[],
  audio: AudioRendition[],
  captions: CaptionRendition[],
  iframes: IframeVariant,
): string {
  const media = [...audio.map(audioLine), ...captions.map(captionLine)];
  const { rates, codec, width, height, uri } = iframes;
  const iframe = `${rateAttributes(rates)},CODECS="${codec}",RESOLUTION=${width}x${height},VIDEO-RANGE=SDR,URI="${uri}"`;
  return [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    '#EXT-X-INDEPENDENT-SEGMENTS',
    ...media,
    ...startFirst(variants).flatMap((variant) => variantLines(variant, captions.length > 0)),
    `#EXT-X-I-FRAME-STREAM-INF:${iframe}`,
    '',
  ].join('\n');
}
