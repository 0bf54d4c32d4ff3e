// Reading what ffmpeg prints of an input: its length, its tracks, their languages and colours. Pure.
import type { Colour } from './colour.ts';

export interface AudioTrack {
  /** Number of the stream in the source. */
  index: number;
  /** As HLS wants it (`en`, `pt-BR`), or null where the track does not say. */
  language: string | null;
}

export interface SourceTrack {
  index: number;
  kind: 'video' | 'audio' | 'subtitle' | 'data' | 'attachment';
  /** ffmpeg's name of the codec. */
  codec: string;
  /** The code in the file, as it is there. */
  language: string | null;
  title: string | null;
  /** What ffmpeg calls dispositions: default, forced, comment, attached pic, … */
  roles: string[];
  channels: number;
}

export interface Description {
  chapters: { fromS: number; title: string }[];
  tracks: SourceTrack[];
  /** Null where the container does not state its length, or ffmpeg only estimated it. */
  durationS: number | null;
  /** The default track, or the first. */
  audio: AudioTrack | null;
  /** Whether there is a video track; cover art is none. */
  hasPicture: boolean;
  /** Number of the track with the cover art. */
  cover: number | null;
  colour: Colour;
}

/** The language tag of RFC 5646 for the code in a track: `ger` and `deu` are both `de`. Null for "undetermined". */
export function languageTag(code: string | undefined): string | null {
  if (code === undefined || /^(und|mis|mul|zxx)$/i.test(code)) return null;
  try {
    return Intl.getCanonicalLocales(code)[0] ?? null;
  } catch {
    return null;
  }
}

function durationIn(text: string): number | null {
  if (/Estimating duration from bitrate/.test(text)) return null;
  const match = /^ {2}Duration: (\d+):(\d\d):(\d\d\.\d+)/m.exec(text);
  return match ? Number(match[1]) * 3600 + Number(match[2]) * 60 + Number(match[3]) : null;
}

function audioIn(text: string): AudioTrack | null {
  const lines = [...text.matchAll(/^ {2,4}Stream #0:(\d+)(?:\[0x\w+\])?(?:\((\w+)\))?: Audio: (.*)$/gm)];
  const chosen = lines.find(([, , , rest]) => /\(default\)/.test(rest!)) ?? lines[0];
  return chosen === undefined ? null : { index: Number(chosen[1]), language: languageTag(chosen[2]) };
}

const isCover = (line: string) => line.includes('(attached pic)');

function videosIn(text: string): { video?: RegExpExecArray | undefined; cover?: RegExpExecArray | undefined } {
  const lines = [...text.matchAll(/^ {2,4}Stream #0:(\d+).*: Video: [^,]+, (\w+)(?:\(([^)]*)\))?.*$/gm)];
  return { video: lines.find(([line]) => !isCover(line)), cover: lines.find(([line]) => isCover(line)) };
}

const notColours = /^(tv|pc|progressive|.*first.*|.*coded.*|.*bpc|left|center|topleft|top|bottomleft|bottom)$/;

const usualPeakNits = 1000;

/** From the content light level, which the container or the first frames carry. */
function peakIn(text: string): number {
  const stated = Number(/MaxCLL=(\d+)/.exec(text)?.[1] ?? 0);
  return stated >= usualPeakNits ? Math.min(stated, 10_000) : usualPeakNits;
}

/** `yuv420p10le(tv, bt2020nc/bt2020/smpte2084)`: pixel format, range, then matrix, primaries and transfer, or one for all. */
function colourIn(text: string): Colour {
  const { video, cover } = videosIn(text);
  const stream = video ?? cover;
  const parts = (stream?.[3] ?? '').split(', ');
  const names = (parts.find((part) => part !== '' && !notColours.test(part)) ?? 'unknown').split('/');
  const [matrix = 'unknown', primaries = matrix, transfer = matrix] = names;
  return {
    pixels: stream?.[2] ?? 'unknown',
    full: parts.includes('pc') || /^yuvj/.test(stream?.[2] ?? ''),
    matrix,
    primaries,
    transfer,
    peakNits: peakIn(text),
    dolbyOnly: /DOVI configuration record: .*profile: 5/.test(text),
  };
}

const KINDS: Record<string, SourceTrack['kind']> = {
  ...{ Video: 'video', Audio: 'audio', Subtitle: 'subtitle', Data: 'data', Attachment: 'attachment' },
};
const CHANNELS: Record<string, number> = {
  mono: 1,
  stereo: 2,
  downmix: 2,
  '5.1': 6,
  '5.1(side)': 6,
  '7.1': 8,
  quad: 4,
};

function channelsIn(rest: string): number {
  const layout = /\d+ Hz, ([^,]+),/.exec(rest)?.[1] ?? '';
  const counted = /^(\d+) channels/.exec(layout);
  const points = /^(\d)\.(\d)/.exec(layout);
  if (layout in CHANNELS) return CHANNELS[layout]!;
  return counted ? Number(counted[1]) : points ? Number(points[1]) + Number(points[2]) : 2;
}

/** Each track's line, and the title among the lines of metadata below it. */
function tracksIn(text: string): SourceTrack[] {
  const heads = [...text.matchAll(/^ {2,4}Stream #0:(\d+)(?:\[0x\w+\])?(?:\((\w+)\))?: (\w+): (.*)$/gm)];
  return heads.flatMap((head, i): SourceTrack[] => {
    const [, index, language, kind, rest] = head as unknown as string[];
    if (!(kind! in KINDS)) return [];
    const below = text.slice(head.index, heads[i + 1]?.index ?? text.length);
    const title = /^ {4,}title +: (.*)$/m.exec(below)?.[1]?.trim();
    const roles = [...rest!.matchAll(/\(([a-z][a-z ]*)\)(?=$| \()/g)].map((match) => match[1]!);
    return [
      {
        index: Number(index),
        kind: KINDS[kind!]!,
        codec: /^[\w.-]+/.exec(rest!)?.[0] ?? 'unknown',
        language: language ?? null,
        title: title || null,
        roles,
        channels: kind === 'Audio' ? channelsIn(rest!) : 0,
      },
    ];
  });
}

function chaptersIn(text: string): Description['chapters'] {
  const heads = [...text.matchAll(/^ {4}Chapter #0:\d+: start (-?[\d.]+), end [\d.]+$/gm)];
  return heads.map((head, i) => {
    const below = text.slice(head.index, heads[i + 1]?.index ?? text.length).split(/^ {2,4}Stream #/m)[0]!;
    const title = /^ {6,}title +: (.*)$/m.exec(below)?.[1]?.trim();
    return { fromS: Math.max(0, Number(head[1])), title: title || `Chapter ${i + 1}` };
  });
}

export function describeInput(text: string): Description {
  const { video, cover } = videosIn(text);
  return {
    chapters: chaptersIn(text),
    tracks: tracksIn(text),
    durationS: durationIn(text),
    audio: audioIn(text),
    hasPicture: video !== undefined,
    cover: cover === undefined ? null : Number(cover[1]),
    colour: colourIn(text),
  };
}
