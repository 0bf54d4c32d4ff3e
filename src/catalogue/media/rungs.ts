// Which renditions a source can have, at which size (never larger than the source, always even, right way up), at which
// frame rate, and how far apart their keyframes are. Pure. Rates are kept as ratios, because 30000/1001 is not 29.97.
import type { Rendition } from '../manifest.ts';

export interface Rung {
  rendition: Rendition;
  width: number;
  height: number;
}

interface Choice {
  rungs: Rung[];
  /** Labels of what is larger than the source. */
  leftOut: string[];
}

interface Size {
  width: number;
  height: number;
}

/** A source a few pixels short of a rendition (1918 × 1078) still counts as that; it is then encoded at its own size. */
const NEARLY = 1.05;

const even = (pixels: number) => Math.max(16, Math.floor(pixels / 2) * 2);

/** How much a source must grow (above 1) or shrink to fill a rendition's frame; an upright source fills it upright. */
function growth(source: Size, rendition: Rendition): number {
  const upright = source.height > source.width;
  const width = upright ? Math.min(rendition.width, rendition.height) : Math.max(rendition.width, rendition.height);
  const height = upright ? Math.max(rendition.width, rendition.height) : Math.min(rendition.width, rendition.height);
  return Math.min(width / source.width, height / source.height);
}

export function sizeIn(source: Size, rendition: Rendition): Size {
  const factor = Math.min(1, growth(source, rendition));
  // Rounded to the nearest even number first, so that 854 × 480 from 1920 × 1080 does not become 852.
  const near = (pixels: number) => even(Math.round((pixels * factor) / 2) * 2);
  return {
    width: Math.min(near(source.width), even(source.width)),
    height: Math.min(near(source.height), even(source.height)),
  };
}

/**
 * The rungs a source can fill, smallest first. Where it fills none, the smallest is made at the source's own size, unless
 * `atLeast` is zero, as for a stream that is published already.
 */
export function chooseRungs(source: Size, renditions: Rendition[], atLeast: 0 | 1 = 1): Choice {
  const sorted = [...renditions].sort((a, b) => a.height * a.width - b.height * b.width || a.video_kbps - b.video_kbps);
  const fitting = sorted.filter((rendition) => growth(source, rendition) <= NEARLY);
  const chosen = fitting.length > 0 ? fitting : sorted.slice(0, atLeast);
  return {
    rungs: chosen.map((rendition) => ({ rendition, ...sizeIn(source, rendition) })),
    leftOut: sorted.filter((rendition) => !chosen.includes(rendition)).map((rendition) => rendition.label),
  };
}

export interface Ratio {
  num: number;
  den: number;
}

export const rateOf = (ratio: Ratio) => ratio.num / ratio.den;
const halved = (ratio: Ratio): Ratio => ({ num: ratio.num, den: ratio.den * 2 });

const common: Ratio[] = [
  { num: 24000, den: 1001 },
  { num: 24, den: 1 },
  { num: 25, den: 1 },
  { num: 30000, den: 1001 },
  { num: 30, den: 1 },
  { num: 48, den: 1 },
  { num: 50, den: 1 },
  { num: 60000, den: 1001 },
  { num: 60, den: 1 },
];

/** Fields a second, for a rate of frames: each frame of interlaced video holds two moments. */
export function fieldRate(rate: Ratio): Ratio {
  const doubled = { num: rate.num * 2, den: rate.den };
  return rateOf(doubled) > FASTEST_FPS ? rate : doubled;
}

const SLOWEST_FPS = 5;
const FASTEST_FPS = 60.5;

function nearestCommon(fps: number): Ratio | null {
  const off = (ratio: Ratio) => Math.abs(rateOf(ratio) / fps - 1);
  const nearest = common.reduce((best, ratio) => (off(ratio) < off(best) ? ratio : best));
  return off(nearest) < 0.06 ? nearest : null;
}

/** Film that is flagged to be shown as video: its frames last two fields and three in turn, and are 23.976 a second. */
function isPulldown(distances: number[]): boolean {
  const near = (seconds: number) => distances.filter((each) => Math.abs(each / seconds - 1) < 0.04).length;
  const [two, three] = [near(1001 / 30000), near(1001 / 20000)];
  return (
    distances.length >= 8 && two + three > 0.95 * distances.length && Math.min(two, three) > 0.4 * distances.length
  );
}

/**
 * The constant rate for a source, from the rate it declares and the distances between its frames in seconds. A
 * declared rate is used where the frames confirm it; a variable one becomes the common rate nearest to its middle.
 */
export function chooseRate(declared: Ratio | null, distances: number[]): Ratio {
  const sorted = distances.filter((distance) => distance > 0).sort((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)];
  // Containers round times, to milliseconds say: the mean of those like the middle one is the truer distance.
  const like = sorted.filter((distance) => Math.abs(distance / middle! - 1) < 0.2);
  const measured = middle === undefined ? null : like.length / like.reduce((sum, distance) => sum + distance, 0);
  let rate: Ratio;
  if (isPulldown(sorted)) rate = { num: 24000, den: 1001 };
  else if (declared !== null && (measured === null || Math.abs(rateOf(declared) / measured - 1) < 0.02))
    rate = declared;
  else if (measured !== null) rate = nearestCommon(measured) ?? { num: Math.max(1, Math.round(measured)), den: 1 };
  else rate = { num: 25, den: 1 };
  while (rateOf(rate) > FASTEST_FPS) rate = halved(rate);
  return rateOf(rate) < SLOWEST_FPS ? { num: SLOWEST_FPS, den: 1 } : rate;
}

/** Four frames of film are shown as five of telecined video. */
export const filmRate = (rate: Ratio): Ratio => ({ num: rate.num * 4, den: rate.den * 5 });

/** Frames in a second, to the nearest whole one: the distance of I-frames and thumbnails. */
export const secondFrames = (rate: Ratio) => Math.max(1, Math.round(rateOf(rate)));

/** Two families: rungs of 432 lines or less show at most 30 frames a second, the others the full rate. */
export function framesSkipped(rate: Ratio, lines: number): 1 | 2 {
  return rateOf(rate) > 30.5 && lines <= 432 ? 2 : 1;
}

/** Frames of a two-second group in a rung; the same length in time for both families, so keyframes stay aligned. */
export function groupFrames(rate: Ratio, skip: 1 | 2): number {
  const halfRate = rateOf(rate) > 30.5;
  const slow = Math.max(1, Math.round(halfRate ? rateOf(rate) : 2 * rateOf(rate)));
  return halfRate && skip === 1 ? slow * 2 : slow;
}
