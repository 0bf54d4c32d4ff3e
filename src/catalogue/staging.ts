// Encoded streams on their way into the site. Each has a folder named by what decides its bytes (source, recipe,
// encoder), so that a build finds what an interrupted one has staged, and never uses what another recipe made.
import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from './catalogue-error.ts';
import { forEachAtOnce, hashFile, listFiles, replaceFile, syncPath } from './files.ts';
import type { PublishedFile } from './ledger.ts';
import { type Encoded, type EncodeProgress, type EncodeTask, encodeStream } from './media/encode.ts';
import { RECIPE_REVISION } from './media/encode-args.ts';
import type { Ffmpeg } from './media/ffmpeg.ts';
import { readUnchanged, type SourceName } from './media/source-file.ts';
import { compressedForms, isText } from './site-texts.ts';

export interface StagedStream {
  folder: string;
  encoded: Encoded;
  /** Relative to the stream's folder. */
  files: Record<string, PublishedFile>;
}

/** What decides the bytes of a stream, next to the encoder. Streams that agree in it share what is encoded. */
export type Recipe = Omit<EncodeTask, 'folder' | 'source'> & { sourceSha256: string };

export interface StagingTask {
  recipe: Recipe;
  source: SourceName;
  /** Of the source, when its digest was taken. */
  sourceStamp: string;
}

export function stagingKey(recipe: Recipe, encoder: string): string {
  const parts = JSON.stringify([RECIPE_REVISION, encoder, Object.entries(recipe).sort()]);
  return createHash('sha256').update(parts).digest('hex').slice(0, 32);
}

async function addCompressed(folder: string): Promise<void> {
  for (const name of await listFiles(folder)) {
    if (!isText(name)) continue;
    const forms = await compressedForms(await readFile(join(folder, name)));
    for (const form of forms) await writeFile(join(folder, name + form.suffix), form.bytes);
  }
}

async function digestAll(folder: string, signal?: AbortSignal): Promise<Record<string, PublishedFile>> {
  const names = await listFiles(folder);
  const files = new Map<string, PublishedFile>();
  await forEachAtOnce(names, 4, async (name) => {
    files.set(name, await hashFile(join(folder, name), signal));
    await syncPath(join(folder, name));
  });
  return Object.fromEntries(names.map((name) => [name, files.get(name)!]));
}

/** Adds the compressed forms of its texts, and gives what is in it, flushed to disk. */
export async function completeFolder(folder: string, signal?: AbortSignal): Promise<Record<string, PublishedFile>> {
  await addCompressed(folder);
  return digestAll(folder, signal);
}

async function readStaged(folder: string): Promise<StagedStream | null> {
  try {
    const done = JSON.parse(await readFile(join(folder, 'done.json'), 'utf8')) as Omit<StagedStream, 'folder'>;
    return { ...done, folder: join(folder, 'files') };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Encodes a stream into staging; one that an earlier build staged is taken as it is. */
export async function stageStream(
  stagingFolder: string,
  ffmpeg: Ffmpeg,
  task: StagingTask,
  progress: EncodeProgress,
): Promise<StagedStream> {
  const folder = join(stagingFolder, stagingKey(task.recipe, ffmpeg.version));
  const staged = await readStaged(folder);
  if (staged !== null) return staged;
  const partial = `${folder}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(join(partial, 'files'), { recursive: true });
  try {
    const { sourceSha256: sha256, ...recipe } = task.recipe;
    const expected = { ...task.source, sha256, stamp: task.sourceStamp };
    const target = join(partial, 'files');
    const encoded = await readUnchanged(
      expected,
      (source) => encodeStream(ffmpeg, { ...recipe, source, folder: target }, progress),
      progress.signal,
    );
    const files = await completeFolder(target, progress.signal);
    await replaceFile(join(partial, 'done.json'), JSON.stringify({ encoded, files }));
    await rename(partial, folder);
    return { folder: join(folder, 'files'), encoded, files };
  } catch (error) {
    // A half-made folder is of no use, and on a full disk its space is needed.
    await rm(partial, { recursive: true, force: true });
    throw error;
  }
}
