// Captions and chapters: SubRip and WebVTT in, WebVTT out, whole and in segments for HLS. Pure.

export interface Cue {
  fromS: number;
  toS: number;
  /** WebVTT's cue settings, such as `line:0`. */
  settings: string;
  text: string;
}

/** A text that cannot be read; the message can be shown to people. */
export class TimedTextError extends Error {}

const MOST_CUES = 100_000;
const TIME = /(?:(\d+):)?(\d{1,2}):(\d{2})[.,](\d{1,3})/;
const TIMING = new RegExp(`^\\s*${TIME.source}\\s*-->\\s*${TIME.source}(.*)$`);

function seconds([hours, minutes, whole, parts]: (string | undefined)[]): number {
  return Number(hours ?? 0) * 3600 + Number(minutes) * 60 + Number(whole) + Number(`0.${parts}`);
}

export function vttClock(at: number): string {
  const ms = Math.round(at * 1000);
  const part = (value: number, width: number) => String(value).padStart(width, '0');
  const [hours, minutes] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60];
  return `${part(hours, 2)}:${part(minutes, 2)}:${part(Math.floor(ms / 1000) % 60, 2)}.${part(ms % 1000, 3)}`;
}

const allowedTags = /<(\/?)(i|b|u|c|v|lang|ruby|rt)((?:[.\s][^<>]*)?)>|<(\d[\d:.]*)>/g;

/** What WebVTT gives a meaning to is kept, the rest is shown as it is; markup of other formats goes. */
function cleanText(text: string): string {
  const bare = text.replace(/\{\\[^}]*\}/g, '').replace(/<\/?font[^>]*>/gi, '');
  const kept: string[] = [];
  const held = bare.replace(allowedTags, (tag) => `\0${kept.push(tag) - 1}\0`);
  const escaped = held.replace(/&(?!(?:amp|lt|gt|nbsp|lrm|rlm|#\d+|#x[\da-f]+);)/gi, '&amp;').replaceAll('<', '&lt;');
  return escaped.replaceAll('-->', '--&gt;').replace(/\0(\d+)\0/g, (_, i: string) => kept[Number(i)]!);
}

/** Older SubRip files are rarely UTF-8. */
export function decodeText(bytes: Buffer): string {
  const text = (() => {
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    } catch {
      return new TextDecoder('windows-1252').decode(bytes);
    }
  })();
  return text.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n');
}

/** The cues of SubRip or WebVTT, in the order of their times; throws TimedTextError where there are none. */
export function parseCues(text: string): Cue[] {
  const isVtt = text.startsWith('WEBVTT');
  const blocks = text.split(/\n[ \t]*\n+/);
  const cues = blocks.flatMap((block): Cue[] => {
    const lines = block.split('\n').filter((line, i) => i > 0 || line.trim() !== '');
    const at = lines.slice(0, 2).findIndex((line) => TIMING.test(line));
    if (at === -1 || (isVtt && /^(NOTE|STYLE|REGION)\b/.test(lines[0] ?? ''))) return [];
    const match = TIMING.exec(lines[at]!)!;
    const body = lines
      .slice(at + 1)
      .join('\n')
      .trimEnd();
    const [fromS, toS] = [seconds(match.slice(1, 5)), seconds(match.slice(5, 9))];
    const top = /\{\\an[789]\}/.test(body) ? 'line:0' : '';
    const settings = isVtt ? match[9]!.trim() : top;
    return toS > fromS && body !== '' ? [{ fromS, toS, settings, text: cleanText(body) }] : [];
  });
  if (cues.length === 0) throw new TimedTextError('has no cue; it has to be SubRip (.srt) or WebVTT (.vtt)');
  if (cues.length > MOST_CUES) throw new TimedTextError(`has more than ${MOST_CUES} cues`);
  return cues.sort((a, b) => a.fromS - b.fromS || a.toS - b.toS);
}

const cueText = ({ fromS, toS, settings, text }: Cue) =>
  `${vttClock(fromS)} --> ${vttClock(toS)}${settings === '' ? '' : ` ${settings}`}\n${text}\n`;

export const formatVtt = (cues: Cue[]) => `WEBVTT\n\n${cues.map(cueText).join('\n')}`;

/** Presentation begins at zero in our tracks, and so does the clock of the captions. */
const SEGMENT_HEAD = 'WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n';

/** One text for each segment; a cue is in every segment during which it is shown. */
export function segmentVtt(cues: Cue[], lengths: number[]): string[] {
  let start = 0;
  return lengths.map((length) => {
    const [from, to] = [start, start + length];
    start = to;
    const shown = cues.filter((cue) => cue.fromS < to && cue.toS > from);
    return `${SEGMENT_HEAD}\n${shown.map(cueText).join('\n')}`;
  });
}

export interface Chapter {
  fromS: number;
  title: string;
}

/** Chapters of a side file: WebVTT or SubRip, or lines such as `1:02:03 The storm`. */
export function parseChapters(text: string): Chapter[] {
  if (text.includes('-->')) return parseCues(text).map(({ fromS, text: title }) => ({ fromS, title }));
  const lines = [...text.matchAll(/^\s*(?:(\d+):)?(\d{1,3}):(\d{2})(?:[.,](\d{1,3}))?\s+(?:-\s+)?(\S.*?)\s*$/gm)];
  const chapters = lines.map((match) => {
    const fromS = seconds([match[1], match[2], match[3], match[4] ?? '0']);
    return { fromS, title: cleanText(match[5]!) };
  });
  if (chapters.length === 0) throw new TimedTextError('has no chapter; each is a line such as "1:02:03 The storm"');
  return chapters.sort((a, b) => a.fromS - b.fromS);
}

/** Each chapter lasts until the next begins; those beyond the end are left out. */
export function chapterCues(chapters: Chapter[], durationS: number): Cue[] {
  const inside = chapters.filter(({ fromS }) => fromS < durationS - 0.001);
  return inside.map(({ fromS, title }, i) => {
    return { fromS, toS: inside[i + 1]?.fromS ?? durationS, settings: '', text: title };
  });
}
