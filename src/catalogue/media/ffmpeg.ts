// Finding and running ffmpeg. Only its command line is used, and only options that both a build of 2018 and today's
// know. ffmpeg goes on after most errors and ends with code 0, so the lines it writes are the only sign that a picture
// was made up or that part of the film is missing.
import { execFile, spawn } from 'node:child_process';
import { accessSync, chmodSync, constants, copyFileSync, mkdtempSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { CatalogueError } from '../catalogue-error.ts';
import type { SourceFile } from './source-file.ts';

export interface Ffmpeg {
  path: string;
  /** Version of program and codec library: part of what decides whether an encode would give the same bytes. */
  version: string;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The ffmpeg that comes with the install. */
export function bundledFfmpeg(): string | null {
  try {
    return makeRunnable((createRequire(import.meta.url)('@ffmpeg-installer/ffmpeg') as { path: string }).path);
  } catch {
    return null;
  }
}

/** npm may have unpacked the program without its executable bit. Where that cannot be set, a copy is made executable. */
export function makeRunnable(path: string): string {
  if (isExecutable(path)) return path;
  try {
    chmodSync(path, 0o755);
    return path;
  } catch {
    const copy = join(mkdtempSync(join(tmpdir(), 'sluice-ffmpeg-')), 'ffmpeg');
    copyFileSync(path, copy);
    chmodSync(copy, 0o755);
    return copy;
  }
}

/** `$FFMPEG`, then PATH, then the one that comes with the install. */
export async function findFfmpeg(explicit: string | undefined, searchPath: string | undefined): Promise<Ffmpeg> {
  const folders = (searchPath ?? '').split(delimiter).filter((folder) => folder !== '');
  const path = explicit || folders.map((folder) => join(folder, 'ffmpeg')).find(isExecutable) || bundledFfmpeg();
  if (!path) throw new CatalogueError('ffmpeg was not found: install it, or name it in FFMPEG');
  try {
    const { stdout } = await promisify(execFile)(path, ['-hide_banner', '-version'], { timeout: 30_000 });
    const program = /^ffmpeg version (\S+)/.exec(stdout)?.[1];
    const codecs = /^libavcodec\s+([\d. ]+\d)/m.exec(stdout)?.[1]?.replaceAll(' ', '');
    if (program === undefined) throw new Error('it does not tell its version');
    return { path, version: `ffmpeg ${program} libavcodec ${codecs ?? 'unknown'}` };
  } catch (error) {
    throw new CatalogueError(`${path} cannot be run: ${(error as Error).message.split('\n')[0]}`);
  }
}

/** Whether a build of ffmpeg has each of these filters. */
export async function hasFilters(ffmpeg: Ffmpeg, names: string[]): Promise<(name: string) => boolean> {
  if (names.length === 0) return () => true;
  const { stdout } = await promisify(execFile)(ffmpeg.path, ['-hide_banner', '-filters'], { timeout: 30_000 });
  const known = new Set([...stdout.matchAll(/^ *[A-Z.]{2,3} +(\w+) /gm)].map(([, name]) => name));
  return (name) => known.has(name);
}

interface RunOptions {
  cwd?: string;
  signal?: AbortSignal | undefined;
  /** The open file that `sourceInput` names. */
  source?: SourceFile;
  /** Called with what the command writes to its standard output. */
  onOutput?: (bytes: Buffer) => void;
  /** Called with each complaint, where the arguments ask for levels; an error stops ffmpeg, and is thrown. */
  onComplaint?: ((complaint: Complaint) => CatalogueError | null) | undefined;
}

/** The number under which ffmpeg inherits the open source. */
const SOURCE_FD = 3;
const inherited = `/proc/self/fd/${SOURCE_FD}`;
const nameOf = (source: SourceFile) => (process.platform === 'linux' ? inherited : source.path);

/** An opened source: its own container and no other, whatever its bytes and its name suggest to ffmpeg. */
export const sourceInput = (source: SourceFile) => [
  '-f',
  source.demuxer,
  '-format_whitelist',
  source.demuxer,
  ...onlyFiles,
  `file:${nameOf(source)}`,
];

/** A published file: an MP4, or a playlist of such. */
export const inputOf = (path: string) => ['-format_whitelist', 'mov,hls', ...onlyFiles, `file:${path}`];

const onlyFiles = ['-protocol_whitelist', 'file', '-i'];

const KEPT_STDERR = 4 * 1024 * 1024;

/** Splits what ffmpeg says into lines and finds the first complaint that must stop it. */
function listen(options: RunOptions, stop: (error: Error) => void): (text: string) => void {
  let rest = '';
  return (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const complaint = complaintIn(options.source ? inWords(line, options.source) : line);
      const error = complaint?.kind === 'disk_full' ? diskFull() : complaint && options.onComplaint?.(complaint);
      if (error) stop(error);
    }
  };
}

/** ffmpeg ended with an error; `stderr` is all that it said. */
export class FfmpegError extends CatalogueError {
  readonly stderr: string;

  constructor(how: string, stderr: string, source?: SourceFile) {
    super(`ffmpeg failed (${how}): ${lastLines(stderr, source)}`);
    this.stderr = stderr;
  }
}

const diskFull = () => Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });

/** Runs ffmpeg to its end and resolves with its standard error; rejects with the last lines of it where ffmpeg fails. */
export function runFfmpeg(ffmpeg: Ffmpeg, args: string[], options: RunOptions = {}): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = spawn(ffmpeg.path, ['-hide_banner', '-nostdin', '-nostats', ...args], {
    cwd: options.cwd,
    stdio: ['ignore', 'pipe', 'pipe', ...(options.source === undefined ? [] : [options.source.fd])],
    signal: options.signal,
    killSignal: 'SIGKILL',
  });
  let stderr = '';
  let failure: Error | undefined;
  const readStderr = listen(options, (error) => {
    failure ??= error;
    child.kill('SIGKILL');
  });
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    if (stderr.length < KEPT_STDERR) stderr += text;
    readStderr(text);
  });
  child.stdout!.on('data', (bytes: Buffer) => options.onOutput?.(bytes));
  child.on('error', (error) => {
    failure ??= error;
  });
  child.on('close', (code, killed) => {
    if (failure !== undefined) reject(failure);
    else if (code === 0) resolve(stderr);
    else if (/No space left on device/.test(stderr)) reject(diskFull());
    else reject(new FfmpegError(killed ?? `code ${code}`, stderr, options.source));
  });
  return promise;
}

/** People know the source by its name, not by the number under which ffmpeg inherits it. */
const inWords = (text: string, source: SourceFile) =>
  text.replaceAll(new RegExp(`(file:)?${nameOf(source)}`, 'g'), source.name);

function lastLines(stderr: string, source?: SourceFile): string {
  const lines = stderr
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^(\[[^\]]*\] )?\[(info|warning)\] /.test(line));
  const text = lines.slice(-3).join(' | ').slice(-600) || 'it said nothing';
  return source === undefined ? text : inWords(text, source);
}

/** Messages with their levels; builds before 2020 report a change of the picture as mere information. */
export const COMPLAINT_LEVEL = ['-v', 'level+info'];

export type Complaint =
  /** Something could not be read or decoded. */
  | { kind: 'damage'; text: string }
  /** The picture has another size or pixel format than at the start. */
  | { kind: 'picture_change' }
  /** The sound has another rate or another number of channels than at the start. */
  | { kind: 'sound_change' }
  | { kind: 'disk_full' };

/** Printed about files that are whole, and about an output that could not be written: a later message says why. */
const harmless = /QT chapter track not found|Last message repeated|^Slave muxer #\d+ failed/;
/** Only warnings to ffmpeg, and yet something is missing. */
const missing = /corrupt|truncat|partial file|ended prematurely/i;
/** What a message says, without the part of ffmpeg that says it and its address in memory. */
const MESSAGE = /^(?:\[[^\]]* @ 0x[0-9a-f]+\] )*\[(info|warning|error|fatal|panic)\] (.*)$/;

export function complaintIn(line: string): Complaint | null {
  const match = MESSAGE.exec(line);
  if (match === null) return null;
  const [, level, text] = match as unknown as [string, string, string];
  if (/No space left on device/.test(text)) return { kind: 'disk_full' };
  if (/^Changing (?:video )?frame properties on the fly/.test(text)) return { kind: 'picture_change' };
  if (/^Changing audio frame properties on the fly/.test(text)) return { kind: 'sound_change' };
  if (harmless.test(text)) return null;
  if (level === 'info' || (level === 'warning' && !missing.test(text))) return null;
  return { kind: 'damage', text };
}
