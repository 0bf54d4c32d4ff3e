// What the catalogue's scenarios share: a folder of their own, short generated sources, and a site built from them with a
// real encoder. Wherever a test is not about what encoders make of sources, an encode that any test has seen before is
// taken from there (remembered-encodes.ts). `SLUICE_TEST_FFMPEG` adds an encoder to those that are tried.

import { execFile, spawn } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { after } from 'node:test';
import { promisify } from 'node:util';
import { type BuildEvent, type BuildResult, buildCatalogue } from '../../src/catalogue/build.ts';
import { type Ffmpeg, findFfmpeg } from '../../src/catalogue/media/ffmpeg.ts';
import type { HlsLayout } from '../../src/catalogue/media/package-hls.ts';
import { type SitePaths, sitePathsOf } from '../../src/catalogue/site-paths.ts';
import { compressedForms, galleryFiles } from '../../src/catalogue/site-texts.ts';
import type { Patience } from '../../src/catalogue/sources.ts';
import { type CliResult, runInProcess } from '../helpers/cli-in-process.ts';
import { rememberedFfmpeg, rememberedFile } from './remembered-encodes.ts';

export const execute = promisify(execFile);
export const cliPath = join(import.meta.dirname, '../../bin/sluice.js');

/** Where to leave what must be undone: a test's context, or the list below. */
export interface Cleanup {
  after(undo: () => unknown): void;
}

/** For what lives as long as a whole suite: hand `undoAll` to its after hook. */
export function collectCleanup(): Cleanup & { undoAll(): Promise<void> } {
  const undos: (() => unknown)[] = [];
  return {
    after: (undo) => undos.push(undo),
    async undoAll() {
      for (const undo of undos.reverse()) await undo();
    },
  };
}

export async function makeFolder(t: Cleanup): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-catalogue-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

let found: Promise<Ffmpeg> | undefined;

export function systemFfmpeg(): Promise<Ffmpeg> {
  found ??= findFfmpeg(undefined, process.env.PATH);
  return found;
}

type Encoder = [which: string, find: () => Promise<Ffmpeg>];

const another = process.env.SLUICE_TEST_FFMPEG;
const others: Encoder[] = another ? [[another, () => findFfmpeg(another, undefined)]] : [];
/** Every encoder that has to make the same of a source. What the first made of the same bytes before is taken from there. */
export const encoders: Encoder[] = [['the system’s ffmpeg', rememberedFfmpeg], ...others];
/** The same at work anew, for tests of how they fail. */
export const freshEncoders: Encoder[] = [['the system’s ffmpeg', systemFfmpeg], ...others];

export interface SourceOptions {
  seconds?: number;
  size?: string;
  rate?: string;
  silent?: boolean;
  /** Further arguments for the output. */
  output?: string[];
  /** Filters after the generator. */
  filters?: string;
  /** Another picture for another number. */
  hue?: number;
}

/** For large or long sources whose codec does not matter: H.264 takes three times as long to write. */
export const quickCodec = ['-c:v', 'mpeg4', '-q:v', '5'];

const SAME = ['-fflags', '+bitexact'];

/** Has ffmpeg write a source, as if it had been complete for a while; the same arguments give the same bytes again. */
export async function writeSource(path: string, args: string[]): Promise<string> {
  const { path: ffmpeg } = await systemFfmpeg();
  const make = (to: string) => execute(ffmpeg, ['-v', 'error', '-y', ...args, to]);
  // What names a file of its test's folder is made of more than its arguments; without numbers that ffmpeg draws, its bytes
  // are the same again where those files are.
  if (args.some((arg) => arg.includes(tmpdir()))) await execute(ffmpeg, ['-v', 'error', '-y', ...args, ...SAME, path]);
  else await writeFile(path, await rememberedFile([...args, extname(path)], make));
  // A build of the command line waits for files that were written to a moment ago.
  await utimes(path, Date.now() / 1000 - 60, Date.now() / 1000 - 60);
  return path;
}

/** Makes a short video; gives its path. */
export function makeSource(folder: string, name: string, options: SourceOptions = {}): Promise<string> {
  const { seconds = 1, size = '64x36', rate = '10', silent = false, output = [], filters, hue = 0 } = options;
  const picture = `testsrc2=s=${size}:r=${rate}:d=${seconds},hue=h=${hue}${filters ? `,${filters}` : ''}`;
  const sound = silent ? [] : ['-f', 'lavfi', '-i', `sine=440:d=${seconds}`, '-c:a', 'aac'];
  const video = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p'];
  return writeSource(join(folder, name), ['-f', 'lavfi', '-i', picture, ...sound, ...video, ...output]);
}

export const tinyRenditions = `renditions:
  - { label: 36p, width: 64, height: 36, video_kbps: 100, audio_kbps: 32 }
  - { label: 90p, width: 160, height: 90, video_kbps: 200, audio_kbps: 48 }
`;

export async function writeManifest(folder: string, streams: string[], renditions = tinyRenditions): Promise<string> {
  const path = join(folder, 'catalogue.yaml');
  const list = streams.length === 0 ? 'streams: []\n' : `streams:\n${streams.map((each) => `  - ${each}\n`).join('')}`;
  await writeFile(path, `preset: ultrafast\n${renditions}${list}`);
  return path;
}

export interface TestBuild {
  folder: string;
  paths: SitePaths;
  events: BuildEvent[];
  encoder: Ffmpeg;
  build(options?: {
    hlsLayout?: HlsLayout;
    jobs?: number;
    strict?: boolean;
    patience?: Patience;
    signal?: AbortSignal;
    now?: Date;
  }): Promise<BuildResult>;
}

/** In its site lies the gallery, which takes longer to compress than a short film to encode; nothing else is published. */
export async function makeBuild(t: Cleanup, ffmpeg?: Ffmpeg): Promise<TestBuild> {
  const build = buildIn(await makeFolder(t), ffmpeg ?? (await rememberedFfmpeg()));
  packedGallery ??= packGallery();
  for (const [path, bytes] of await packedGallery) {
    mkdirSync(dirname(join(build.paths.site, path)), { recursive: true });
    writeFileSync(join(build.paths.site, path), bytes);
  }
  return build;
}

let packedGallery: Promise<Map<string, Buffer>> | undefined;

async function packGallery(): Promise<Map<string, Buffer>> {
  const files = await galleryFiles();
  for (const [path, text] of [...files])
    for (const { suffix, bytes } of await compressedForms(text)) files.set(path + suffix, bytes);
  return files;
}

function buildIn(folder: string, encoder: Ffmpeg): TestBuild {
  const paths = sitePathsOf(join(folder, 'site'));
  const events: BuildEvent[] = [];
  return {
    folder,
    paths,
    events,
    encoder,
    build: ({ now, ...options } = {}) =>
      buildCatalogue({
        paths,
        manifestPath: join(folder, 'catalogue.yaml'),
        ffmpeg: async () => encoder,
        now: () => now ?? new Date(),
        jobs: 1,
        hlsLayout: 'ranges',
        patience: { quietMs: 0, longestMs: 0 },
        report: (event) => events.push(event),
        ...options,
      }),
  };
}

/**
 * Builds a site when the first test of a suite asks for it; each test gets a copy of the whole folder, to do with as it
 * likes, and with another encoder if it names one.
 */
export function sharedSite(
  make: (build: TestBuild) => Promise<unknown>,
): (t: Cleanup, another?: Ffmpeg) => Promise<TestBuild> {
  const cleanup = collectCleanup();
  after(cleanup.undoAll);
  const makeOnce = async () => {
    const build = await makeBuild(cleanup);
    await make(build);
    return build;
  };
  let made: Promise<TestBuild> | undefined;
  return async (t, another) => {
    made ??= makeOnce();
    const { folder, encoder } = await made;
    const copy = await makeFolder(t);
    cpSync(folder, copy, { recursive: true, preserveTimestamps: true });
    return buildIn(copy, another ?? encoder);
  };
}

/** Writes an encoder that takes as long for a source as it takes to watch it, at no cost; gives its path. */
export async function makeSlowEncoder(folder: string): Promise<string> {
  const path = join(folder, 'slow-ffmpeg');
  const { path: real } = await systemFfmpeg();
  const script = `#!/bin/sh\ncase "$*" in *-filter_complex*) set -- -re "$@";; esac\nexec "${real}" "$@"\n`;
  await writeFile(path, script, { mode: 0o755 });
  return path;
}

/** A server on a free port of the loopback address; gives its address. */
export async function listen(t: Cleanup, handle: RequestListener): Promise<string> {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const { path: usualEncoder } = await rememberedFfmpeg();
const envOf = (more: NodeJS.ProcessEnv) => ({ ...process.env, FFMPEG: usualEncoder, ...more });

/** Runs `sluice catalogue …` in this process. */
export const runCatalogue = (args: string[], env: NodeJS.ProcessEnv = {}): Promise<CliResult> =>
  runInProcess(['catalogue', ...args], { env: envOf(env), cwd: process.cwd() });

interface ProcessOptions {
  env?: NodeJS.ProcessEnv;
  limitBlocks?: number;
}

/** Runs it as a process of its own, which a signal or a limit can end. */
export function startCatalogue(args: string[], { env = {}, limitBlocks }: ProcessOptions = {}) {
  const words = [cliPath, 'catalogue', ...args];
  // Under a limit for the size of files, a write fails as it does on a full disk.
  const limited = ['-c', `ulimit -f ${limitBlocks}; exec "$@"`, 'sh', process.execPath, ...words];
  const whole: [program: string, words: string[]] = limitBlocks ? ['bash', limited] : [process.execPath, words];
  const child = spawn(...whole, { env: envOf(env), stdio: ['ignore', 'pipe', 'pipe'] });
  const said = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said.stderr += text;
  });
  const ended = new Promise<Omit<CliResult, 'code'> & { code: number | null }>((resolve) =>
    child.on('close', (code) => resolve({ code, ...said })),
  );
  return { child, said, ended };
}
