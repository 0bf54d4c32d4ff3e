// Fragments → segments, and what a playlist must say of them: where, how long, how many bits a second. Pure.
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
