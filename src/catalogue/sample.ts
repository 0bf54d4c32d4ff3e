// The sample streams of a first start. ffmpeg generates their sources, so that a new machine has something to show within
// seconds and without a download. One of them has no HLS.
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuildEvent, type BuildResult, buildCatalogue } from './build.ts';
import { type Ffmpeg, runFfmpeg } from './media/ffmpeg.ts';
import { DOCUMENT_PATH, sitePathsOf } from './site-paths.ts';

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
    seconds: 9,
    video:
      'life=s=160x90:mold=12:r=25:ratio=0.12:seed=7:death_color=#0b3b46:life_color=#5eead4,format=yuv444p,scale=960:540:flags=neighbor',
    sound: 'aevalsrc=0.12*sin(2*PI*220*t)+0.08*sin(2*PI*277.2*t)+0.06*sin(2*PI*329.6*t):s=48000',
    progressive: ['270p', '540p'],
    hls: true,
  },
  {
    id: 'sample-set',
    title: 'Into the Mandelbrot set',
    seconds: 6,
    video:
      'mandelbrot=s=320x180:r=25:start_scale=2.6:end_scale=0.05:end_pts=150:maxiter=150,format=yuv444p,scale=960:540',
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

export const sampleManifest = `# The sample catalogue. Make your own in the same form, and build it with: sluice catalogue build
preset: ultrafast
renditions:
  - { label: 144p, width: 256, height: 144, video_kbps: 80, audio_kbps: 48 }
  - { label: 270p, width: 480, height: 270, video_kbps: 500, audio_kbps: 96 }
  - { label: 540p, width: 960, height: 540, video_kbps: 1600, audio_kbps: 128 }
streams:
${samples
  .map(({ id, title, progressive, hls }) => {
    const rest = `progressive: [${progressive.join(', ')}], hls: ${hls ? 'yes' : 'no'}`;
    return `  - { id: ${id}, title: "${title}", source: ${id}.mp4, ${rest} }\n`;
  })
  .join('')}`;

async function makeSource(ffmpeg: Ffmpeg, folder: string, sample: SampleStream, signal?: AbortSignal): Promise<void> {
  const inputs = [
    '-f',
    'lavfi',
    '-i',
    sample.video,
    ...(sample.sound === '' ? [] : ['-f', 'lavfi', '-i', sample.sound]),
  ];
  // The codec that is quickest to write: what it makes is read once and removed.
  const video = ['-c:v', 'mpeg4', '-q:v', '2', '-pix_fmt', 'yuv420p'];
  const end = ['-c:a', 'aac', '-t', String(sample.seconds), `${sample.id}.mp4`];
  await runFfmpeg(ffmpeg, ['-y', '-v', 'error', ...inputs, ...video, ...end], { cwd: folder, signal });
}

interface SampleOptions {
  ffmpeg: Ffmpeg;
  now: () => Date;
  signal?: AbortSignal;
  report?: (event: BuildEvent) => void;
}

const sampleFolder = (site: string) => join(sitePathsOf(site).state, 'sample');

/** Whether a site is empty, or the build of its sample was interrupted. */
export function needsSample(site: string): boolean {
  return !existsSync(join(site, DOCUMENT_PATH)) || existsSync(sampleFolder(site));
}

/**
 * Builds the sample streams into an empty site. An empty catalogue is there at once, so that health, document and gallery
 * answer while the streams are encoded. The sources lie beside the site and are removed once all is published.
 */
export async function buildSample(site: string, options: SampleOptions): Promise<BuildResult> {
  const paths = sitePathsOf(site);
  const folder = sampleFolder(site);
  const manifestPath = join(folder, 'catalogue.yaml');
  const { ffmpeg, ...rest } = options;
  // Nobody else writes the sources: they are complete as soon as ffmpeg has ended.
  const patience = { quietMs: 0, longestMs: 0 };
  const encoder = { ffmpeg: async () => ffmpeg, jobs: 2, hlsLayout: 'ranges' as const, patience };
  const build = () => buildCatalogue({ ...rest, paths, manifestPath, ...encoder });
  await mkdir(folder, { recursive: true });
  if (!existsSync(join(site, DOCUMENT_PATH))) {
    await writeFile(manifestPath, `${sampleManifest.slice(0, sampleManifest.indexOf('streams:'))}streams: []\n`);
    await build();
  }
  await writeFile(manifestPath, sampleManifest);
  await Promise.all(samples.map((sample) => makeSource(ffmpeg, folder, sample, options.signal)));
  const result = await build();
  await rm(folder, { recursive: true, force: true });
  return result;
}
