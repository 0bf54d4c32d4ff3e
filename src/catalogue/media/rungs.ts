// Which renditions a source can have, and at which size: never larger than the source, always even, right way up.
import type { Rendition } from '../manifest.ts';

export interface Rung {
  rendition: Rendition;
  width: number;
  height: number;
}

export interface Choice {
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
