// What a source really is. Its headers are trusted for the kind of its tracks and colours; size, rotation, fields and
// frame rate are taken from frames that ffmpeg decoded, after it turned them upright, and its length from its packets.
// A file that was cut off still states its full length, and some state none; so every packet is read once, which takes
// as long as copying the file.
import { CatalogueError } from '../catalogue-error.ts';
import { type Colour, checkColours } from './colour.ts';
import { type AudioTrack, type Description, describeInput, type SourceTrack } from './describe-input.ts';
import {
  COMPLAINT_LEVEL,
  type Complaint,
  type Ffmpeg,
  FfmpegError,
  hasFilters,
  MOST_PIXELS,
  runFfmpeg,
  sourceInput,
  withoutLevels,
} from './ffmpeg.ts';
import { chooseRate, fieldRate, filmRate, type Ratio, rateOf } from './rungs.ts';
import type { SourceFile } from './source-file.ts';

export interface PacketTimes {
  /** Seconds from the start of the source to the end of the last frame. */
  videoEndS: number;
  /** The same for whatever lasts longest. */
  endS: number;
  /** The same for each track, by its number in the source. */
  endsS: Map<number, number>;
  /** Seconds from each frame to the next, in the order in which they are shown. */
  distances: number[];
}

/** Some twelve hours at 60 frames a second; what comes after has the same rate. */
const MOST_TIMES = 2_500_000;

/** Reads the output of ffmpeg's framecrc format: time bases, then "stream, dts, pts, duration, size, checksum". */
class PacketClock {
  #bases = new Map<number, number>();
  #ends = new Map<number, number>();
  #longest = new Map<number, number>();
  #shownAt: number[] = [];
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
    if (stream === 0 && this.#shownAt.length < MOST_TIMES) this.#shownAt.push(Number(packet[3]) * unit);
    // The last packet of some containers has no length; then it is shown as long as another.
    const length = Number(packet[4]) || (this.#longest.get(stream) ?? 0);
    this.#longest.set(stream, Math.max(length, this.#longest.get(stream) ?? 0));
    this.#ends.set(stream, Math.max(this.#ends.get(stream) ?? 0, (Number(packet[3]) + length) * unit));
  }

  get times(): PacketTimes {
    const shown = Float64Array.from(this.#shownAt).sort();
    return {
      videoEndS: this.#ends.get(0) ?? 0,
      endS: Math.max(0, ...this.#ends.values()),
      endsS: new Map([...this.#ends].map(([output, end]) => [output - 1, end])),
      distances: Array.from(shown.subarray(1), (time, i) => time - shown[i]!),
    };
  }
}

/** Prints every packet of an input: first those of `main`, which the stream lasts as long as, then those of each track. */
const packetsOf = (input: number, main: string) => [
  ...['-copy_unknown', '-map', `${input}:${main}`, '-map', String(input), '-c', 'copy', '-f', 'framecrc', '-'],
];

/** What viewers see: a video track; of sound alone its cover art, or a plain ground. */
export type Picture = { kind: 'video' } | { kind: 'cover'; index: number } | { kind: 'ground' };

/** What the headers, the first frames and the times of the packets say. */
export interface ProbedSource {
  picture: Picture;
  /** Upright size in square pixels. */
  width: number;
  height: number;
  interlaced: boolean;
  /** Film in interlaced video: every fifth frame is made of fields of its neighbours. */
  telecined: boolean;
  /** Whether ffmpeg's zscale can convert its colours. */
  precise: boolean;
  audio: AudioTrack | null;
  colour: Colour;
  /** Null where the container does not state it. */
  declaredS: number | null;
  /** As it declares it; null where it does not. */
  declaredRate: Ratio | null;
  /** Seconds from each of the first frames to the next. */
  firstDistances: number[];
  /** Whether captions are hidden in the picture. */
  captionsInside: boolean;
  tracks: SourceTrack[];
  chapters: { fromS: number; title: string }[];
  packets: PacketTimes;
  /** What ffmpeg complained of meanwhile. */
  complaints: Complaint[];
}

export interface SourceFacts extends ProbedSource {
  /** The constant frame rate the stream is encoded at. */
  rate: Ratio;
}

const PROBED_FRAMES = 100;
const READ_QUIET_MS = 120_000;
const MOST_COMPLAINTS = 1000;

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

/** Of five frames of telecined film one repeats a top field and one a bottom field; video repeats none. */
function isTelecined(output: string): boolean {
  // Newer ones count an empty run first.
  const match = [...output.matchAll(/Repeated Fields: Neither: *(\d+) Top: *(\d+) Bottom: *(\d+)/g)].at(-1);
  const [neither, top, bottom] = (match?.slice(1).map(Number) ?? [0, 0, 0]) as [number, number, number];
  const all = neither + top + bottom;
  return all >= 50 && [top, bottom].every((count) => count > 0.12 * all && count < 0.28 * all);
}

/** One run of ffmpeg that prints the packets of a source; what it complains of is judged afterwards. */
class Reading {
  #clock = new PacketClock();
  #complaints: Complaint[] = [];

  run(ffmpeg: Ffmpeg, source: SourceFile, args: string[], signal?: AbortSignal): Promise<string> {
    return runFfmpeg(ffmpeg, [...COMPLAINT_LEVEL, ...args], {
      signal,
      source,
      quietMs: READ_QUIET_MS,
      onOutput: (bytes) => this.#clock.write(bytes),
      onComplaint: (complaint) => {
        if (this.#complaints.length < MOST_COMPLAINTS) this.#complaints.push(complaint);
        return null;
      },
    });
  }

  found(source: SourceFile): { packets: PacketTimes; complaints: Complaint[] } {
    const packets = this.#clock.times;
    if (packets.videoEndS <= 0) throw noFrame(source);
    return { packets, complaints: this.#complaints };
  }
}

const noFrame = ({ name }: SourceFile) => new CatalogueError(`${name} is not a video: it has no frame`);

function checkPixels({ name }: SourceFile, said: string): void {
  if (!/max pixel count|max_pixels/.test(said)) return;
  throw new CatalogueError(
    `${name} has more than ${MOST_PIXELS / 1e6} million pixels in a frame; scale it down to 8K or less first`,
  );
}

/** What ffmpeg says of the source, without the levels of its messages and without the second time that it opens it. */
const describeSource = (said: string) => describeInput(withoutLevels(said).split(/^Input #1,|^Stream mapping:/m)[0]!);

/**
 * Reads all of a source in one go. It is opened twice: a decoder goes on to the end of its input, although only the first
 * frames are asked for.
 */
export async function probeSource(ffmpeg: Ffmpeg, source: SourceFile, signal?: AbortSignal): Promise<ProbedSource> {
  const input = sourceInput(source);
  const frames = ['-map', '0:V:0', '-vf', 'showinfo,idet', '-frames:v', String(PROBED_FRAMES), '-f', 'null', '-'];
  const reading = new Reading();
  let output: string;
  try {
    output = await reading.run(ffmpeg, source, [...input, ...input, ...frames, ...packetsOf(1, 'V:0')], signal);
  } catch (error) {
    if (!(error instanceof CatalogueError)) throw error;
    const said = error instanceof FfmpegError ? error.stderr : '';
    checkPixels(source, said);
    const described = describeSource(said);
    if (described.audio !== null && !described.hasPicture) return probeSound(ffmpeg, source, described, signal);
    throw new CatalogueError(`${source.name} is not a video that ffmpeg can read: ${error.message}`);
  }
  checkPixels(source, output);
  const shown = readFrames(output);
  const first = shown.frames[0];
  if (first === undefined) throw noFrame(source);
  const { audio, colour, durationS, tracks, chapters } = describeSource(output);
  const available = await hasFilters(ffmpeg);
  checkColours(source.name, colour, available);
  return {
    picture: { kind: 'video' },
    width: Math.round(first.width * first.pixelAspect),
    height: first.height,
    interlaced: shown.frames.filter((frame) => frame.interlaced).length * 2 > shown.frames.length,
    telecined: isTelecined(output),
    precise: available('zscale') && first.width % 2 === 0 && first.height % 2 === 0,
    audio,
    colour,
    declaredS: durationS,
    declaredRate: shown.rate,
    firstDistances: shown.frames.slice(1).map((frame, i) => frame.time - shown.frames[i]!.time),
    captionsInside: /Closed Captions/i.test(output),
    tracks,
    chapters,
    ...reading.found(source),
  };
}

/** A ground for sound without a picture. */
const GROUND = { width: 640, height: 360, pixels: 'yuv420p' };
const STILL_RATE: Ratio = { num: 5, den: 1 };

/** The size of cover art, upright; null where it cannot be decoded. */
async function coverSize(
  ffmpeg: Ffmpeg,
  source: SourceFile,
  cover: number,
  signal?: AbortSignal,
): Promise<{ width: number; height: number } | null> {
  const args = ['-map', `0:${cover}`, '-vf', 'showinfo', '-frames:v', '1', '-f', 'null', '-'];
  const options = { signal, source, quietMs: READ_QUIET_MS };
  try {
    const [frame] = readFrames(await runFfmpeg(ffmpeg, [...sourceInput(source), ...args], options)).frames;
    return frame ?? null;
  } catch (error) {
    if (error instanceof CatalogueError) return null;
    throw error;
  }
}

/** Sound alone becomes a stream that shows one picture. */
async function probeSound(
  ffmpeg: Ffmpeg,
  source: SourceFile,
  said: Description,
  signal?: AbortSignal,
): Promise<ProbedSource> {
  const size = said.cover === null ? null : await coverSize(ffmpeg, source, said.cover, signal);
  const reading = new Reading();
  await reading.run(ffmpeg, source, [...sourceInput(source), ...packetsOf(0, String(said.audio!.index))], signal);
  const ground = { ...said.colour, pixels: GROUND.pixels, full: false, matrix: 'bt709' };
  return {
    picture: size === null ? { kind: 'ground' } : { kind: 'cover', index: said.cover! },
    width: size?.width ?? GROUND.width,
    height: size?.height ?? GROUND.height,
    interlaced: false,
    telecined: false,
    precise: false,
    audio: said.audio,
    colour: size === null ? ground : said.colour,
    declaredS: said.durationS,
    declaredRate: null,
    firstDistances: [],
    captionsInside: false,
    tracks: said.tracks,
    chapters: said.chapters,
    ...reading.found(source),
  };
}

const middle = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** Some containers hold the two fields of a frame as packets of their own. */
function frameDistances({ interlaced, firstDistances, packets }: ProbedSource): number[] {
  const ratio = middle(firstDistances) / middle(packets.distances);
  return packets.distances.length === 0 || (interlaced && Math.abs(ratio - 2) < 0.05)
    ? firstDistances
    : packets.distances;
}

/** The frame rate is that of the whole source: how it begins says little of how it goes on. */
export function withRate(probed: ProbedSource, everyField: boolean): SourceFacts {
  if (probed.picture.kind !== 'video') return { ...probed, rate: STILL_RATE };
  const rate = chooseRate(probed.declaredRate, frameDistances(probed));
  const isNtsc = Math.abs(rateOf(rate) / (30000 / 1001) - 1) < 0.01;
  if (probed.telecined && isNtsc) return { ...probed, rate: filmRate(rate) };
  return { ...probed, telecined: false, rate: everyField ? fieldRate(rate) : rate };
}

export const framesIn = (seconds: number, rate: Ratio) => Math.max(1, Math.round(seconds * rateOf(rate)));
