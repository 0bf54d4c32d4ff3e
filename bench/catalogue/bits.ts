// What quality by CRF with a cap saves against fixed bit rates: the sample catalogue and a pan, both ways, and how many bits a
// fixed rate needs for the same SSIM.
import { execFile } from 'node:child_process';
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeSampleSources, samplePreset, sampleRenditions } from '../../scripts/sample-streams.ts';
import type { Preset, Rendition } from '../../src/catalogue/manifest.ts';
import { BUFFER_START, encodeArgs, videoName } from '../../src/catalogue/media/encode-args.ts';
import { type Ffmpeg, runFfmpeg } from '../../src/catalogue/media/ffmpeg.ts';
import { probeSource, type SourceFacts, withRate } from '../../src/catalogue/media/probe-source.ts';
import { chooseRungs, type Rung } from '../../src/catalogue/media/rungs.ts';
import { openSource, type SourceFile } from '../../src/catalogue/media/source-file.ts';
import { type Cleanup, makeFolder, systemFfmpeg, writeSource } from '../../test/catalogue/fixture.ts';
import { note } from '../lib/report.ts';
import { judge } from './in-turns.ts';

const execute = promisify(execFile);

const documented: Rendition[] = [
  { label: '144p', width: 256, height: 144, video_kbps: 80, audio_kbps: 48 },
  { label: '360p', width: 640, height: 360, video_kbps: 800, audio_kbps: 96 },
  { label: '720p', width: 1280, height: 720, video_kbps: 2500, audio_kbps: 128 },
];

interface Film {
  name: string;
  path: string;
  preset: Preset;
  renditions: Rendition[];
}

async function makeFilms(folder: string, ffmpeg: Ffmpeg): Promise<Film[]> {
  const films: Film[] = (await makeSampleSources(ffmpeg.path, folder)).map((name) => ({
    name,
    path: join(folder, `${name}.mp4`),
    preset: samplePreset,
    renditions: sampleRenditions,
  }));
  const still = 'mandelbrot=s=2560x720:r=25:maxiter=200:start_scale=1.2,trim=end_frame=1,loop=-1:1:0,setpts=N/25/TB';
  const pan = ['-f', 'lavfi', '-i', `${still},crop=1280:720:4*n:0`, '-t', '6', '-c:v', 'mpeg4', '-q:v', '2'];
  const path = await writeSource(join(folder, 'pan.mp4'), pan);
  return [...films, { name: 'pan', path, preset: 'medium', renditions: documented }];
}

interface Made {
  kbps: number;
  ssim: number;
}

/** As streams were encoded before: at a rate that does not depend on the picture. */
function atFixedRate(args: string[], kbps: number): string[] {
  const at = args.findIndex((each, i) => each === '-crf' && args[i + 2] === '-maxrate');
  const limit = `${Math.round(kbps * 1.5)}k`;
  const full = args.map((each) => each.replace(`:${BUFFER_START}`, ''));
  return full.toSpliced(at, 6, '-b:v', `${Math.round(kbps)}k`, '-maxrate', limit, '-bufsize', limit);
}

class Encoder {
  readonly #ffmpeg: Ffmpeg;
  readonly #film: Film;
  readonly #source: SourceFile;
  readonly #facts: SourceFacts;
  readonly #seconds: number;
  readonly #folder: string;

  constructor(ffmpeg: Ffmpeg, film: Film, source: SourceFile, facts: SourceFacts, seconds: number, folder: string) {
    this.#ffmpeg = ffmpeg;
    this.#film = film;
    this.#source = source;
    this.#facts = facts;
    this.#seconds = seconds;
    this.#folder = folder;
  }

  /** Without a rate: by quality, as streams are encoded now. */
  async make(rung: Rung, kbps: number | null): Promise<Made> {
    const common = { source: this.#source, facts: this.#facts, everyField: false, seconds: this.#seconds };
    const tracks = { heldFrames: 0, sounds: [], progressive: [], hls: [rung], extras: null };
    const args = encodeArgs({ ...common, ...tracks, preset: this.#film.preset });
    const words = kbps === null ? args : atFixedRate(args, kbps);
    await runFfmpeg(this.#ffmpeg, words, { cwd: this.#folder, source: this.#source });
    const path = join(this.#folder, videoName(rung.rendition.label));
    const { size } = await stat(path);
    return { kbps: (size * 8) / 1000 / this.#seconds, ssim: await this.#ssim(path, rung) };
  }

  async #ssim(path: string, { width, height }: Rung): Promise<number> {
    const scale = `scale=${width}:${height}:flags=bicubic+accurate_rnd+full_chroma_int`;
    const graph = `[1:v]${scale},format=yuv420p,settb=1/25,setpts=N[r];[0:v]settb=1/25,setpts=N[e];[e][r]ssim`;
    const inputs = ['-i', path, '-i', this.#film.path];
    const words = ['-hide_banner', '-nostats', ...inputs, '-lavfi', graph, '-f', 'null', '-'];
    const { stderr } = await execute(this.#ffmpeg.path, words);
    return Number(/SSIM .*All:([\d.]+)/.exec(stderr)![1]);
  }

  /** Bits a second at a fixed rate for the same SSIM, halving the range a few times. */
  async sameAs(rung: Rung, goal: Made): Promise<number> {
    let [low, high] = [goal.kbps * 0.4, goal.kbps * 2.5];
    let made = goal;
    for (let i = 0; i < 6; i++) {
      const rate = Math.sqrt(low * high);
      made = await this.make(rung, rate);
      if (made.ssim < goal.ssim) low = rate;
      else high = rate;
    }
    return made.kbps;
  }
}

const written = ({ kbps, ssim }: Made) => `${kbps.toFixed(0)} kb/s (SSIM ${ssim.toFixed(4)})`;

export async function benchBits(cleanup: Cleanup): Promise<void> {
  const ffmpeg = await systemFfmpeg();
  const folder = await makeFolder(cleanup);
  await mkdir(join(folder, 'hls'));
  const [total, samples] = [
    { before: 0, after: 0, same: 0 },
    { before: 0, after: 0 },
  ];
  for (const film of await makeFilms(folder, ffmpeg)) {
    const { file, ...source } = await openSource({ path: film.path, name: film.name });
    const probed = await probeSource(ffmpeg, source);
    const facts = withRate(probed, false);
    const encoder = new Encoder(ffmpeg, film, source, facts, probed.packets.videoEndS, folder);
    for (const rung of chooseRungs(facts, film.renditions).rungs) {
      const before = await encoder.make(rung, rung.rendition.video_kbps);
      const after = await encoder.make(rung, null);
      const same = await encoder.sameAs(rung, after);
      const of = `${written(before)} at a fixed rate; for the same SSIM ${same.toFixed(0)} kb/s`;
      note(`${film.name} ${rung.rendition.label}`, written(after), of);
      total.before += before.kbps;
      total.after += after.kbps;
      total.same += same;
      if (film.name === 'pan') continue;
      samples.before += before.kbps;
      samples.after += after.kbps;
    }
    await file.close();
  }
  // Most rungs of the samples would need more than their limit for that quality: so they get the limit, and no more.
  const limited = samples.after / samples.before;
  const of = `${samples.after.toFixed(0)} of ${samples.before.toFixed(0)} kb/s, all rungs together`;
  judge('bits of the sample catalogue, by quality / at fixed rates', limited.toFixed(2), '≤ 1', limited <= 1, of);
  const share = total.after / total.before;
  const all = `${total.after.toFixed(0)} of ${total.before.toFixed(0)} kb/s`;
  judge('the same with a pan', share.toFixed(2), '≤ 0.80', share <= 0.8, all);
  const equal = total.after / total.same;
  const what = 'bits at equal SSIM, by quality / at fixed rates, with a pan';
  judge(what, equal.toFixed(2), '≤ 1.05', equal <= 1.05, `${total.after.toFixed(0)} and ${total.same.toFixed(0)} kb/s`);
}
