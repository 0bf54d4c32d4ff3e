// Looks into what was published with one ffmpeg for many files: it takes longer to start than to read a short film.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cleanup, execute, makeFolder } from './fixture.ts';

/** What ffmpeg says of the streams of each file, a line each; fails where it cannot open one. */
export async function describeFiles(paths: string[]): Promise<string[][]> {
  const inputs = paths.flatMap((path) => ['-i', path]);
  const nothing = ['-map', '0', '-c', 'copy', '-t', '0', '-f', 'null', '-'];
  const { stderr } = await execute('ffmpeg', ['-hide_banner', '-nostdin', ...inputs, ...nothing]);
  const said = stderr.slice(0, stderr.indexOf('\nOutput #0'));
  return paths.map((_, i) => [...said.matchAll(new RegExp(`^ +Stream #${i}:.*$`, 'gm'))].map(([line]) => line));
}

export interface Wanted {
  path: string;
  /** Arguments of the input, such as `-sseof`. */
  input?: string[];
  /** What is written of it, as raw bytes: maps, filters, formats. */
  output: string[];
}

/** Decodes a part of each file. */
export async function decodeFiles(t: Cleanup, wanted: Wanted[]): Promise<Buffer[]> {
  const folder = await makeFolder(t);
  const nameOf = (i: number) => join(folder, String(i));
  const inputs = wanted.flatMap(({ path, input = [] }) => [...input, '-i', path]);
  const outputs = wanted.flatMap(({ output }, i) => [...output, nameOf(i)]);
  await execute('ffmpeg', ['-v', 'error', '-nostdin', ...inputs, ...outputs]);
  return Promise.all(wanted.map((_, i) => readFile(nameOf(i))));
}

/** Integrated loudness and true peak, by a meter that is not the filter that changed them. */
export async function loudness(path: string): Promise<{ lufs: number; peak: number }> {
  const args = ['-hide_banner', '-nostats', '-i', path, '-map', '0:a', '-af', 'ebur128=peak=true', '-f', 'null', '-'];
  const { stderr } = await execute('ffmpeg', args);
  const summary = stderr.slice(stderr.lastIndexOf('Summary:'));
  return {
    lufs: Number(/I: +(-?[\d.]+) LUFS/.exec(summary)![1]),
    peak: Number(/Peak: +(-?[\d.]+) dBFS/.exec(summary)![1]),
  };
}
