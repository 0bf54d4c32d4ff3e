// A source is opened once. Everything that is read of it, by us and by ffmpeg, is read through that one open file, so that
// another file that takes its name in the meantime cannot be published in its place.
import { createHash } from 'node:crypto';
import { type BigIntStats, constants, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { CatalogueError, codeOf } from '../../fault.ts';
import { demuxerOf, HEAD_BYTES } from './container.ts';

export interface SourceFile {
  /** For messages; what is read is the open file. */
  path: string;
  fd: number;
  /** ffmpeg's name of the container. */
  demuxer: string;
}

const CHUNK_BYTES = 1024 * 1024;

/** Changes whenever the file is written to, or another takes its name. */
const stampOf = (facts: BigIntStats) => `${facts.size} ${facts.mtimeNs} ${facts.ctimeNs} ${facts.ino}`;

export interface SourceStamp {
  stamp: string;
  /** When its content was last written. A file that is moved into place keeps that time. */
  writtenMs: number;
  /** When anything of it changed, its name included. */
  changedMs: number;
}

function checkedStamp(path: string, facts: BigIntStats): SourceStamp {
  if (facts.isDirectory()) throw new CatalogueError(`its source ${path} is a folder, not a video file`);
  if (!facts.isFile()) throw new CatalogueError(`its source ${path} is a pipe or a device, not a video file`);
  const writtenMs = Number(facts.mtimeMs);
  return { stamp: stampOf(facts), writtenMs, changedMs: Math.max(writtenMs, Number(facts.ctimeMs)) };
}

/** Null where there is no such file; throws where it is none that can be read twice. */
export function stampSource(path: string): SourceStamp | null {
  try {
    const facts = statSync(path, { bigint: true, throwIfNoEntry: false });
    return facts === undefined ? null : checkedStamp(path, facts);
  } catch (error) {
    if (codeOf(error) === 'ENOTDIR') return null;
    throw error;
  }
}

export async function stampOpen(path: string, file: FileHandle): Promise<SourceStamp> {
  return checkedStamp(path, await file.stat({ bigint: true }));
}

/** Without O_NONBLOCK the open of a pipe would wait for a writer, and nothing could interrupt it. */
export const openToRead = (path: string) => open(path, constants.O_RDONLY | constants.O_NONBLOCK);

export async function digestOpen(file: FileHandle, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  const bytes = file.createReadStream({ start: 0, autoClose: false, highWaterMark: CHUNK_BYTES });
  for await (const chunk of bytes) {
    signal?.throwIfAborted();
    hash.update(chunk as Buffer);
  }
  return hash.digest('hex');
}

async function recognise(path: string, file: FileHandle): Promise<string> {
  const head = Buffer.alloc(HEAD_BYTES);
  const { bytesRead } = await file.read(head, 0, HEAD_BYTES, 0);
  const demuxer = demuxerOf(head.subarray(0, bytesRead));
  if (demuxer === null)
    throw new CatalogueError(`${path} is not a video file: its content is no container that is known here`);
  return demuxer;
}

/** Opens a source for ffmpeg, to be closed by the caller. */
export async function openSource(path: string): Promise<SourceFile & { file: FileHandle }> {
  const file = await openToRead(path);
  try {
    await stampOpen(path, file);
    return { path, fd: file.fd, file, demuxer: await recognise(path, file) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

interface ExpectedSource {
  path: string;
  sha256: string;
  /** When the digest was taken. */
  stamp: string;
}

/**
 * Reads a source whose digest is known. What `read` made is given back only if the bytes had that digest all the time:
 * they are digested again after it, and before it where the file was touched since the digest was taken.
 */
export async function readUnchanged<T>(
  expected: ExpectedSource,
  read: (source: SourceFile) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const { file, ...source } = await openSource(expected.path);
  const check = async () => {
    if ((await digestOpen(file, signal)) === expected.sha256) return;
    throw new CatalogueError(`${expected.path} was changed while the build read it; build again`);
  };
  try {
    if ((await stampOpen(expected.path, file)).stamp !== expected.stamp) await check();
    const result = await read(source);
    await check();
    return result;
  } finally {
    await file.close();
  }
}
