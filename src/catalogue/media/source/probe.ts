// What a source really is. Its headers are trusted for the kind of its tracks and colours; size, rotation, fields and frame
// rate are taken from frames that ffmpeg decoded, after it turned them upright, and its length from its packets.
import { CatalogueError } from '../../fault.ts';
import { type Ffmpeg, hasFilters, runFfmpeg, sourceInput } from '../ffmpeg.ts';
import { chooseRate, type Ratio, rateOf } from '../timing.ts';
import { type Colour, checkColours, colourFilterNames } from './colour.ts';
import { type AudioTrack, describeInput } from './describe.ts';
import type { SourceFile } from './source-file.ts';

export interface SourceFacts {
  /** Upright size in square pixels. */
  width: number;
  height: number;
  interlaced: boolean;
  audio: AudioTrack | null;
  colour: Colour;
  /** Null where the container does not state it. */
  declaredS: number | null;
  /** The constant frame rate the stream is encoded at. */
  rate: Ratio;
}

const PROBED_FRAMES = 40;

const ratio = (text: string | undefined): Ratio | null => {
  const match = /^(\d+)\/(\d+)$/.exec(text ?? '');
  return match && Number(match[1]) > 0 && Number(match[2]) > 0
    ? { num: Number(match[1]), den: Number(match[2]) }
    : null;
};

interface Frame {
  time: number;
  interlaced: boolean;
  width: number;
  height: number;
  pixelAspect: number;
}

/** Reads the lines of ffmpeg's showinfo filter. */
function readFrames(said: string): { frames: Frame[]; rate: Ratio | null } {
  const config = /config in time_base: (\d+\/\d+), frame_rate: (\d+\/\d+)/.exec(said);
  const base = ratio(config?.[1]) ?? { num: 1, den: 1 };
  const frames = [...said.matchAll(/ pts: *(-?\d+) .*? sar:(\d+\/\d+) s:(\d+)x(\d+) i:([PTB])/g)].map(
    (match): Frame => {
      const aspect = ratio(match[2]);
      return {
        time: (Number(match[1]) * base.num) / base.den,
        interlaced: match[5] !== 'P',
        width: Number(match[3]),
        height: Number(match[4]),
        pixelAspect: aspect === null ? 1 : aspect.num / aspect.den,
      };
    },
  );
  return { frames, rate: ratio(config?.[2]) };
}

export async function probeSource(ffmpeg: Ffmpeg, source: SourceFile, signal?: AbortSignal): Promise<SourceFacts> {
  const frameArgs = ['-map', '0:V:0', '-vf', 'showinfo', '-frames:v', String(PROBED_FRAMES), '-f', 'null', '-'];
  let said: string;
  try {
    said = await runFfmpeg(ffmpeg, [...sourceInput(source), ...frameArgs], { signal, source });
  } catch (error) {
    if (!(error instanceof CatalogueError)) throw error;
    throw new CatalogueError(`${source.path} is not a video that ffmpeg can read: ${error.message}`);
  }
  const { frames, rate } = readFrames(said);
  const first = frames[0];
  if (first === undefined) throw new CatalogueError(`${source.path} is not a video: it has no frame`);
  const { audio, colour, durationS } = describeInput(said.slice(0, said.indexOf('Stream mapping:')));
  checkColours(source.path, colour, await hasFilters(ffmpeg, colourFilterNames(colour)));
  return {
    width: Math.round(first.width * first.pixelAspect),
    height: first.height,
    interlaced: frames.filter((frame) => frame.interlaced).length * 2 > frames.length,
    audio,
    colour,
    declaredS: durationS,
    rate: chooseRate(
      rate,
      frames.slice(1).map((frame, i) => frame.time - frames[i]!.time),
    ),
  };
}

export const framesIn = (seconds: number, rate: Ratio) => Math.max(1, Math.round(seconds * rateOf(rate)));
