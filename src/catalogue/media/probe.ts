// What a source really is. Its headers are trusted for the length and for whether there is sound; size, rotation, fields
// and frame rate are taken from frames that ffmpeg decoded, after it turned them upright.
import { CatalogueError } from '../fault.ts';
import { type Ffmpeg, inputOf, runFfmpeg } from './ffmpeg.ts';
import { chooseRate, type Ratio } from './timing.ts';

export interface SourceFacts {
  /** Upright size in square pixels. */
  width: number;
  height: number;
  interlaced: boolean;
  hasAudio: boolean;
  durationS: number;
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

function declaredDuration(said: string): number | null {
  const match = /^ {2}Duration: (\d+):(\d\d):(\d\d\.\d+)/m.exec(said);
  return match ? Number(match[1]) * 3600 + Number(match[2]) * 60 + Number(match[3]) : null;
}

/** For containers that do not state their length: reads every packet once. */
async function countedDuration(ffmpeg: Ffmpeg, source: string, signal?: AbortSignal): Promise<number> {
  let report = '';
  const onOutput = (bytes: Buffer) => {
    report = (report + bytes.toString('latin1')).slice(-4096);
  };
  const args = ['-progress', 'pipe:1', ...inputOf(source), '-map', '0:V:0', '-c', 'copy', '-f', 'null', '-'];
  await runFfmpeg(ffmpeg, args, { signal, onOutput });
  const last = [...report.matchAll(/^out_time=(\d+):(\d\d):(\d\d(?:\.\d+)?)/gm)].at(-1);
  return last ? Number(last[1]) * 3600 + Number(last[2]) * 60 + Number(last[3]) : 0;
}

export async function probeSource(ffmpeg: Ffmpeg, source: string, signal?: AbortSignal): Promise<SourceFacts> {
  const frameArgs = ['-map', '0:V:0', '-vf', 'showinfo', '-frames:v', String(PROBED_FRAMES), '-f', 'null', '-'];
  let said: string;
  try {
    said = await runFfmpeg(ffmpeg, [...inputOf(source), ...frameArgs], { signal });
  } catch (error) {
    if (!(error instanceof CatalogueError)) throw error;
    throw new CatalogueError(`${source} is not a video that ffmpeg can read: ${error.message}`);
  }
  const { frames, rate } = readFrames(said);
  const first = frames[0];
  if (first === undefined) throw new CatalogueError(`${source} is not a video: it has no frame`);
  const input = said.slice(0, said.indexOf('Stream mapping:'));
  return {
    width: Math.round(first.width * first.pixelAspect),
    height: first.height,
    interlaced: frames.filter((frame) => frame.interlaced).length * 2 > frames.length,
    hasAudio: /^ +Stream #0:\d+.*: Audio: /m.test(input),
    durationS: declaredDuration(input) ?? (await countedDuration(ffmpeg, source, signal)),
    rate: chooseRate(
      rate,
      frames.slice(1).map((frame, i) => frame.time - frames[i]!.time),
    ),
  };
}
