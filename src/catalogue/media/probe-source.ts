// What a source really is. Its headers are trusted for the kind of its tracks and colours; size, rotation, fields and
// frame rate are taken from frames that ffmpeg decoded, after it turned them upright, and its length from its packets.
// A file that was cut off still states its full length, and some state none; so every packet is read once, which takes
// as long as copying the file.
import { CatalogueError } from '../catalogue-error.ts';
import { type Colour, checkColours, colourFilterNames } from './colour.ts';
import { type AudioTrack, describeInput } from './describe-input.ts';
import {
  COMPLAINT_LEVEL,
  type Complaint,
  type Ffmpeg,
  FfmpegError,
  hasFilters,
  runFfmpeg,
  sourceInput,
} from './ffmpeg.ts';
import { chooseRate, type Ratio, rateOf } from './rungs.ts';
import type { SourceFile } from './source-file.ts';

export interface PacketTimes {
  /** Seconds from the start of the source to the end of the last frame. */
  videoEndS: number;
  /** The same for whatever lasts longest. */
  endS: number;
}

/** Reads the output of ffmpeg's framecrc format: time bases, then "stream, dts, pts, duration, size, checksum". */
class PacketClock {
  #bases = new Map<number, number>();
  #ends = new Map<number, number>();
  #longest = new Map<number, number>();
  #rest = '';

  write(bytes: Buffer): void {
    const lines = (this.#rest + bytes.toString('latin1')).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#take(line);
  }

  #take(line: string): void {
    const base = /^#tb (\d+): (\d+)\/(\d+)/.exec(line);
    if (base !== null) this.#bases.set(Number(base[1]), Number(base[2]) / Number(base[3]));
    const packet = /^(\d+), *(-?\d+), *(-?\d+), *(\d+),/.exec(line);
    if (packet === null) return;
    const stream = Number(packet[1]);
    const unit = this.#bases.get(stream) ?? 0;
    // The last packet of some containers has no length; then it is shown as long as another.
    const length = Number(packet[4]) || (this.#longest.get(stream) ?? 0);
    this.#longest.set(stream, Math.max(length, this.#longest.get(stream) ?? 0));
    this.#ends.set(stream, Math.max(this.#ends.get(stream) ?? 0, (Number(packet[3]) + length) * unit));
  }

  get times(): PacketTimes {
    return { videoEndS: this.#ends.get(0) ?? 0, endS: Math.max(0, ...this.#ends.values()) };
  }
}

interface ReadOptions {
  signal?: AbortSignal | undefined;
  onComplaint?: (complaint: Complaint) => CatalogueError | null;
}

export async function readPackets(ffmpeg: Ffmpeg, source: SourceFile, options: ReadOptions): Promise<PacketTimes> {
  const clock = new PacketClock();
  const everything = ['-copy_unknown', '-map', '0:V:0', '-map', '0', '-c', 'copy', '-f', 'framecrc', '-'];
  const args = [...COMPLAINT_LEVEL, ...sourceInput(source), ...everything];
  await runFfmpeg(ffmpeg, args, { ...options, source, onOutput: (bytes) => clock.write(bytes) });
  if (clock.times.videoEndS <= 0) throw new CatalogueError(`${source.name} is not a video: it has no frame`);
  return clock.times;
}

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
function readFrames(output: string): { frames: Frame[]; rate: Ratio | null } {
  const config = /config in time_base: (\d+\/\d+), frame_rate: (\d+\/\d+)/.exec(output);
  const base = ratio(config?.[1]) ?? { num: 1, den: 1 };
  const frames = [...output.matchAll(/ pts: *(-?\d+) .*? sar:(\d+\/\d+) s:(\d+)x(\d+) i:([PTB])/g)].map(
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
  let output: string;
  try {
    output = await runFfmpeg(ffmpeg, [...sourceInput(source), ...frameArgs], { signal, source });
  } catch (error) {
    if (!(error instanceof CatalogueError)) throw error;
    const said = error instanceof FfmpegError ? describeInput(error.stderr) : null;
    if (said !== null && said.audio !== null && !said.hasPicture)
      throw new CatalogueError(`${source.name} has sound and no picture; put a picture into it first`);
    throw new CatalogueError(`${source.name} is not a video that ffmpeg can read: ${error.message}`);
  }
  const { frames, rate } = readFrames(output);
  const first = frames[0];
  if (first === undefined) throw new CatalogueError(`${source.name} is not a video: it has no frame`);
  const { audio, colour, durationS } = describeInput(output.slice(0, output.indexOf('Stream mapping:')));
  checkColours(source.name, colour, await hasFilters(ffmpeg, colourFilterNames(colour)));
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
