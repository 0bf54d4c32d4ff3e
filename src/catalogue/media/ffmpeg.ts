// Finding and running ffmpeg. Only its command line is used, and only options that both a build of 2018 and today's know.
import { execFile, spawn } from 'node:child_process';
import { accessSync, chmodSync, constants, copyFileSync, mkdtempSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { CatalogueError } from '../fault.ts';

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
function bundledFfmpeg(): string | null {
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

interface RunOptions {
  cwd?: string;
  signal?: AbortSignal | undefined;
  /** Called with what the command writes to its standard output. */
  onOutput?: (bytes: Buffer) => void;
}

/** Sources are files and nothing else: a "video" that is really a playlist must not make ffmpeg fetch what it names. */
export const inputOf = (source: string) => ['-protocol_whitelist', 'file,pipe,crypto,data', '-i', `file:${source}`];

const KEPT_STDERR = 4 * 1024 * 1024;

/** Runs ffmpeg to its end and resolves with its standard error; rejects with the last lines of it where ffmpeg fails. */
export function runFfmpeg(ffmpeg: Ffmpeg, args: string[], options: RunOptions = {}): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = spawn(ffmpeg.path, ['-hide_banner', '-nostdin', '-nostats', ...args], {
    cwd: options.cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: options.signal,
    killSignal: 'SIGKILL',
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (said.length < KEPT_STDERR) said += text;
  });
  child.stdout.on('data', (bytes: Buffer) => options.onOutput?.(bytes));
  let failure: Error | undefined;
  child.on('error', (error) => {
    failure = error;
  });
  child.on('close', (code, killed) => {
    if (failure !== undefined) reject(failure);
    else if (code === 0) resolve(said);
    else reject(new CatalogueError(`ffmpeg failed (${killed ?? `code ${code}`}): ${lastLines(said)}`));
  });
  return promise;
}

function lastLines(said: string): string {
  const lines = said.split('\n').filter((line) => line.trim() !== '');
  return lines.slice(-3).join(' | ').slice(-600) || 'it said nothing';
}
