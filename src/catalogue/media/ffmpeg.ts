// Finding and running ffmpeg, within limits of memory, pixels and time. Only its command line is used. ffmpeg goes on after
// most errors and ends with code 0, so the lines it writes are the only sign that a picture was made up or that part of
// the film is missing.
import { execFile, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { totalmem } from 'node:os';
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

/** ffmpeg 5: what Debian 12 has and keeps secure. Older ones have holes that a foreign file could use. */
const OLDEST_LIBAVCODEC = 59;

/** The one command that installs ffmpeg here. */
function installCommand(): string {
  const commands: [program: string, command: string][] = [
    ['/usr/bin/apt-get', 'apt-get install -y ffmpeg'],
    ['/usr/bin/dnf', 'dnf install -y ffmpeg-free'],
    ['/sbin/apk', 'apk add ffmpeg'],
    ['/usr/bin/pacman', 'pacman -S ffmpeg'],
  ];
  return commands.find(([program]) => isExecutable(program))?.[1] ?? 'brew install ffmpeg';
}

async function versionOf(path: string): Promise<Ffmpeg> {
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

/** `$FFMPEG`, then PATH. It opens files of unknown origin, so it has to be one that still gets security fixes. */
export async function findFfmpeg(explicit: string | undefined, searchPath: string | undefined): Promise<Ffmpeg> {
  const folders = (searchPath ?? '').split(delimiter).filter((folder) => folder !== '');
  const path = explicit || folders.map((folder) => join(folder, 'ffmpeg')).find(isExecutable);
  if (!path)
    throw new CatalogueError(`ffmpeg was not found; install it with: ${installCommand()} (or name it in FFMPEG)`);
  const found = await versionOf(path);
  if (Number(/libavcodec (\d+)/.exec(found.version)?.[1] ?? OLDEST_LIBAVCODEC) >= OLDEST_LIBAVCODEC) return found;
  throw new CatalogueError(
    `${path} is ${found.version}, too old to open foreign files safely; install a current one with: ${installCommand()}`,
  );
}

const knownFilters = new Map<string, Promise<Set<string>>>();

async function listFilters(path: string): Promise<Set<string>> {
  const { stdout } = await promisify(execFile)(path, ['-hide_banner', '-filters'], { timeout: 30_000 });
  return new Set([...stdout.matchAll(/^ *[A-Z.]{2,3} +(\w+) /gm)].map(([, name]) => name!));
}

/** Tells whether a build of ffmpeg has a filter; each build is asked once. */
export async function hasFilters({ path, version }: Ffmpeg): Promise<(name: string) => boolean> {
  const key = `${path} ${version}`;
  if (!knownFilters.has(key)) knownFilters.set(key, listFilters(path));
  const known = await knownFilters.get(key)!;
  return (name) => known.has(name);
}

interface RunOptions {
  cwd?: string;
  signal?: AbortSignal | undefined;
  /** The open file that `sourceInput` names. */
  source?: SourceFile;
  /** Called with what the command writes to its standard output. */
  onOutput?: (bytes: Buffer) => void;
  /** How long ffmpeg may be silent; by default a quarter of an hour. */
  quietMs?: number;
  /** Called with each complaint, where the arguments ask for levels; an error stops ffmpeg, and is thrown. */
  onComplaint?: ((complaint: Complaint) => CatalogueError | null) | undefined;
}

/** The number under which ffmpeg inherits the open source. */
const SOURCE_FD = 3;
const inherited = `/proc/self/fd/${SOURCE_FD}`;
const nameOf = (source: SourceFile) => (process.platform === 'linux' ? inherited : source.path);

/** A frame of 8K; each pixel of a larger one would cost some thirty bytes, in every thread of a decoder. */
export const MOST_PIXELS = 36_000_000;

/** An opened source: its own container and no other, whatever its bytes and its name suggest to ffmpeg. */
export const sourceInput = (source: SourceFile) => [
  ...['-max_pixels', String(MOST_PIXELS)],
  '-f',
  source.demuxer,
  '-format_whitelist',
  source.demuxer,
  ...onlyFiles,
  `file:${nameOf(source)}`,
];

/** A published file: an MP4, or a playlist of such. */
export const inputOf = (path: string) => ['-format_whitelist', 'mov,hls,webvtt', ...onlyFiles, `file:${path}`];

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
    const memory = /Cannot allocate memory/.test(stderr)
      ? `; it may use ${Math.round(memoryLimit() / GIB)} GB of memory`
      : '';
    super(`ffmpeg failed (${how}): ${lastLines(stderr, source)}${memory}`);
    this.stderr = stderr;
  }
}

const tooQuiet = (quietMs: number) =>
  `ffmpeg got nowhere for ${Math.round(quietMs / 60_000)} minutes and was stopped; is the source damaged?`;
const diskFull = () => Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });

const QUIET_MS = 15 * 60_000;
const GIB = 1024 ** 3;
/** A small file can make a decoder ask for any amount; what is left is for the rest of the machine. */
const memoryLimit = () => Math.min(32 * GIB, Math.max(4 * GIB, Math.floor(totalmem() * 0.75)));

/** The program under a limit of its address space, which a process can only be given from outside. */
function limited(path: string, args: string[]): [program: string, args: string[]] {
  if (process.platform === 'win32') return [path, args];
  const script = 'ulimit -v "$1" 2>/dev/null; shift; exec "$@"';
  return ['/bin/sh', ['-c', script, 'sh', String(Math.floor(memoryLimit() / 1024)), path, ...args]];
}

/** Runs ffmpeg to its end and resolves with its standard error; rejects with the last lines of it where ffmpeg fails. */
export function runFfmpeg(ffmpeg: Ffmpeg, args: string[], options: RunOptions = {}): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const [program, words] = limited(ffmpeg.path, ['-hide_banner', '-nostdin', '-nostats', ...args]);
  const child = spawn(program, words, {
    cwd: options.cwd,
    stdio: ['ignore', 'pipe', 'pipe', ...(options.source === undefined ? [] : [options.source.fd])],
    signal: options.signal,
    killSignal: 'SIGKILL',
  });
  let stderr = '';
  let failure: Error | undefined;
  const stop = (error: Error) => {
    failure ??= error;
    child.kill('SIGKILL');
  };
  const readStderr = listen(options, stop);
  const quietMs = options.quietMs ?? QUIET_MS;
  const patience = setTimeout(() => stop(new CatalogueError(tooQuiet(quietMs))), quietMs);
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    patience.refresh();
    if (stderr.length < KEPT_STDERR) stderr += text;
    readStderr(text);
  });
  child.stdout!.on('data', (bytes: Buffer) => {
    patience.refresh();
    options.onOutput?.(bytes);
  });
  child.on('error', (error) => {
    failure ??= error;
  });
  child.on('close', (code, killed) => {
    clearTimeout(patience);
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

/** Messages with their levels. */
export const COMPLAINT_LEVEL = ['-v', 'level+info'];

export type Complaint =
  /** Something could not be read or decoded. */
  | { kind: 'damage'; text: string }
  /** The picture has another size or pixel format than at the start. */
  | { kind: 'picture_change' }
  /** The sound has another rate or another number of channels than at the start. */
  | { kind: 'sound_change' }
  | { kind: 'disk_full' };

/** Printed about files that are whole, and about what ffmpeg writes: a later message says why that failed. */
const harmless =
  /QT chapter track not found|Last message repeated|^Slave muxer #\d+ failed|non monotonically increasing dts to muxer/;
/** Only warnings to ffmpeg, and yet something is missing. */
const missing = /corrupt|truncat|partial file|ended prematurely/i;
/** What a message says, without the part of ffmpeg that says it and its address in memory. */
const MESSAGE = /^(?:\[[^\]]* @ 0x[0-9a-f]+\] )*\[(info|warning|error|fatal|panic)\] (.*)$/;
const LEVEL = /^((?:\[[^\]]* @ 0x[0-9a-f]+\] )*)\[(?:info|warning|error|fatal|panic)\] /gm;

/** What ffmpeg said, as it says it when nobody asks for levels. */
export const withoutLevels = (said: string) => said.replaceAll(LEVEL, '$1');

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
