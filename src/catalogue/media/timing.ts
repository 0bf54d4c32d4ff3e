// Frame rates and keyframe distances. Rates are kept as ratios, because 30000/1001 is not 29.97.
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

/**
 * The constant rate for a source, from the rate it declares and the distances between its first frames in seconds. A
 * declared rate is used where the frames confirm it; a variable one becomes the common rate nearest to its middle.
 */
export function chooseRate(declared: Ratio | null, distances: number[]): Ratio {
  const sorted = distances.filter((distance) => distance > 0).sort((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)];
  const measured = middle === undefined ? null : 1 / middle;
  let rate: Ratio;
  if (declared !== null && (measured === null || Math.abs(rateOf(declared) / measured - 1) < 0.02)) rate = declared;
  else if (measured !== null) rate = nearestCommon(measured) ?? { num: Math.max(1, Math.round(measured)), den: 1 };
  else rate = { num: 25, den: 1 };
  while (rateOf(rate) > FASTEST_FPS) rate = halved(rate);
  return rateOf(rate) < SLOWEST_FPS ? { num: SLOWEST_FPS, den: 1 } : rate;
}

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
