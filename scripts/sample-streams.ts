// npm run build -- samples: makes the sample streams that come with the install, with the ffmpeg of this machine. What the
// films show is computed by ffmpeg itself.
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildCatalogue } from '../src/catalogue/build.ts';
import type { Preset, Rendition } from '../src/catalogue/manifest.ts';
import { findFfmpeg } from '../src/catalogue/media/ffmpeg.ts';
import { SAMPLE_DOCUMENT, SAMPLE_LEDGER, sampleFolder } from '../src/catalogue/sample.ts';
import { DOCUMENT_PATH, sitePathsOf } from '../src/catalogue/site-paths.ts';

interface SampleStream {
  id: string;
  title: string;
  seconds: number;
  video: string;
  sound: string;
  progressive: string[];
  hls: boolean;
}

const samples: SampleStream[] = [
  {
    id: 'sample-cells',
    title: 'Cells: the game of life',
    seconds: 6,
    video:
      'life=s=96x54:mold=10:r=10:ratio=0.12:seed=7:death_color=#0b3b46:life_color=#5eead4,fps=20,format=yuv444p,scale=960:540:flags=neighbor',
    sound: 'aevalsrc=0.12*sin(2*PI*220*t)+0.08*sin(2*PI*277.2*t)+0.06*sin(2*PI*329.6*t):s=48000',
    progressive: ['270p', '540p'],
    hls: true,
  },
  {
    id: 'sample-set',
    title: 'Into the Mandelbrot set',
    seconds: 5,
    video:
      'mandelbrot=s=480x270:r=25:start_scale=2.6:end_scale=0.05:end_pts=150:maxiter=150,format=yuv444p,scale=960:540',
    sound: 'aevalsrc=0.12*sin(2*PI*(160+24*t)*t):s=48000',
    progressive: ['540p'],
    hls: true,
  },
  {
    id: 'sample-card',
    title: 'Test card, one file and no sound',
    seconds: 5,
    video: 'testsrc2=s=480x270:r=25',
    sound: '',
    progressive: ['270p'],
    hls: false,
  },
];

export const sampleRenditions: Rendition[] = [
  { label: '144p', width: 256, height: 144, video_kbps: 80, audio_kbps: 48 },
  { label: '270p', width: 480, height: 270, video_kbps: 250, audio_kbps: 64 },
  { label: '540p', width: 960, height: 540, video_kbps: 600, audio_kbps: 64 },
];

export const samplePreset: Preset = 'slow';

const sampleManifest = JSON.stringify({
  preset: samplePreset,
  renditions: sampleRenditions,
  streams: samples.map(({ id, title, progressive, hls }) => ({ id, title, source: `${id}.mp4`, progressive, hls })),
});

async function makeSource(ffmpeg: string, folder: string, sample: SampleStream): Promise<void> {
  const picture = ['-f', 'lavfi', '-i', sample.video];
  const sound = sample.sound === '' ? [] : ['-f', 'lavfi', '-i', sample.sound];
  const codecs = ['-c:v', 'mpeg4', '-q:v', '2', '-pix_fmt', 'yuv420p', '-c:a', 'aac'];
  const args = ['-y', '-v', 'error', ...picture, ...sound, ...codecs, '-t', String(sample.seconds), `${sample.id}.mp4`];
  await promisify(execFile)(ffmpeg, args, { cwd: folder });
}

/** Writes the sources, and gives their ids. */
export async function makeSampleSources(ffmpeg: string, folder: string): Promise<string[]> {
  await Promise.all(samples.map((sample) => makeSource(ffmpeg, folder, sample)));
  return samples.map(({ id }) => id);
}

export async function buildSamples(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-samples-'));
  try {
    const ffmpeg = await findFfmpeg(process.env.FFMPEG, process.env.PATH);
    await makeSampleSources(ffmpeg.path, folder);
    const manifestPath = join(folder, 'catalogue.yaml');
    await writeFile(manifestPath, sampleManifest);
    const paths = sitePathsOf(join(folder, 'site'));
    const encoder = { ffmpeg: async () => ffmpeg, jobs: 1, hlsLayout: 'ranges' as const };
    await buildCatalogue({ paths, manifestPath, now: () => new Date(), strict: true, ...encoder });
    await rm(sampleFolder, { recursive: true, force: true });
    await mkdir(sampleFolder);
    await writeFile(join(sampleFolder, SAMPLE_DOCUMENT), await readFile(join(paths.site, DOCUMENT_PATH)));
    await writeFile(join(sampleFolder, SAMPLE_LEDGER), await readFile(paths.ledger));
    const isNeeded = (path: string) => !/\.(br|gz)$|SHA256SUMS/.test(path);
    await cp(join(paths.site, 'media'), join(sampleFolder, 'media'), { recursive: true, filter: isNeeded });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
