// Writing HLS playlists (RFC 8216 and its successor draft, and Apple's authoring rules). Pure: text from numbers.
import { type BitRates, type Segment, TARGET_SECONDS } from './segments.ts';

/** Where the bytes of a track lie: one file with ranges, or an init file and one file for each segment. */
export type TrackLayout =
  | { kind: 'ranges'; file: string; initSize: number }
  | { kind: 'segments'; init: string; segmentFile: (index: number) => string };

function segmentLines(segment: Segment, i: number, layout: TrackLayout): string[] {
  const info = `#EXTINF:${segment.seconds.toFixed(5)},`;
  if (layout.kind === 'segments') return [info, layout.segmentFile(i)];
  return [info, `#EXT-X-BYTERANGE:${segment.size}@${segment.offset}`, layout.file];
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
}

export interface AudioGroup {
  id: string;
  uri: string;
  channels: number;
  /** Tag of RFC 5646; null where nobody says. */
  language: string | null;
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

function startFirst(variants: Variant[]): Variant[] {
  const sorted = [...variants].sort((a, b) => a.rates.peak - b.rates.peak);
  const off = (variant: Variant) => Math.abs(Math.log(variant.rates.average / FIRST_BITS));
  const first = sorted.reduce((best, variant) => (off(variant) < off(best) ? variant : best));
  return [first, ...sorted.filter((variant) => variant !== first)];
}

const rateAttributes = (rates: BitRates) => `BANDWIDTH=${rates.peak},AVERAGE-BANDWIDTH=${rates.average}`;

function variantLines(variant: Variant): string[] {
  const attributes = [
    rateAttributes(variant.rates),
    `CODECS="${variant.codecs.join(',')}"`,
    `RESOLUTION=${variant.width}x${variant.height}`,
    `FRAME-RATE=${variant.fps.toFixed(3)}`,
    'VIDEO-RANGE=SDR',
    ...(variant.audioGroup === null ? [] : [`AUDIO="${variant.audioGroup}"`]),
    'CLOSED-CAPTIONS=NONE',
  ];
  return [`#EXT-X-STREAM-INF:${attributes.join(',')}`, variant.uri];
}

export function multivariantPlaylist(variants: Variant[], audio: AudioGroup[], iframes: IframeVariant): string {
  const media = audio.map(
    (group) =>
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group.id}",NAME="Main",DEFAULT=YES,AUTOSELECT=YES,` +
      `${group.language === null ? '' : `LANGUAGE="${group.language}",`}CHANNELS="${group.channels}",URI="${group.uri}"`,
  );
  const { rates, codec, width, height, uri } = iframes;
  const iframe = `${rateAttributes(rates)},CODECS="${codec}",RESOLUTION=${width}x${height},VIDEO-RANGE=SDR,URI="${uri}"`;
  return [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    '#EXT-X-INDEPENDENT-SEGMENTS',
    ...media,
    ...startFirst(variants).flatMap(variantLines),
    `#EXT-X-I-FRAME-STREAM-INF:${iframe}`,
    '',
  ].join('\n');
}
