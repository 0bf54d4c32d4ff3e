// A source is opened once. Everything that is read of it, by us and by ffmpeg, is read through that one open file, so
// that another file that takes its name in the meantime cannot be published in its place.
//
// Its bytes decide which container it is, never its name. ffmpeg gets this demuxer and no other: left to itself it
// would take a playlist, a DASH manifest or a concat script for a video, and publish the files they name. Every
// container here holds its media itself.
import { createHash } from 'node:crypto';
import { type BigIntStats, constants, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { CatalogueError, codeOf } from '../catalogue-error.ts';
import { child, childrenOf, MediaFormatError, readBox, topLevelBoxes } from './boxes.ts';

/** Bytes read from the start of a file to recognise it. */
const HEAD_BYTES = 4096;

const TS_PACKET_BYTES = 188;
const isoBoxes = ['ftyp', 'styp', 'moov', 'mdat', 'moof', 'sidx', 'free', 'skip', 'wide', 'pnot'];

const starts = (hex: string, at = 0) => {
  const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex');
  return (head: Buffer) => head.subarray(at, at + bytes.length).equals(bytes);
};
const says = (text: string, at = 0) => starts(Buffer.from(text, 'latin1').toString('hex'), at);

/** A sync byte at the same place of several packets in a row; a recording may begin in the middle of one. */
function isTransportStream(head: Buffer): boolean {
  for (const size of [TS_PACKET_BYTES, TS_PACKET_BYTES + 4]) {
    for (let first = 0; first < size; first++) {
      const syncs = [0, 1, 2, 3, 4].filter((i) => head[first + i * size] === 0x47);
      if (syncs.length === 5) return true;
    }
  }
  return false;
}

/** The header of the first unit of a raw H.264 or HEVC stream, after its start code. */
function firstUnit(head: Buffer): Buffer | null {
  if (starts('00 00 00 01')(head)) return head.subarray(4, 6);
  return starts('00 00 01')(head) ? head.subarray(3, 5) : null;
}

/** Parameter sets, supplemental information and access unit delimiters: what a raw stream can begin with. */
const isRawH264 = (head: Buffer) => [0x67, 0x27, 0x47, 0x06, 0x09].includes(firstUnit(head)?.[0] ?? 0);
const isRawHevc = (head: Buffer) => {
  const unit = firstUnit(head);
  return unit !== null && [0x40, 0x42, 0x44, 0x46, 0x4e].includes(unit[0]!) && unit[1] === 0x01;
};

/** The sync word of a frame of MPEG audio, layer III. */
const isFrameOfMp3 = (head: Buffer) => head[0] === 0xff && (head[1]! & 0xe6) === 0xe2;

/** ffmpeg's name of the demuxer, and how its files begin. The first that matches is taken. */
const containers: [demuxer: string, matches: (head: Buffer) => boolean][] = [
  ['mov', (head) => isoBoxes.includes(head.toString('latin1', 4, 8))],
  ['matroska', starts('1a 45 df a3')],
  ['avi', (head) => says('RIFF')(head) && says('AVI ', 8)(head)],
  ['flv', says('FLV\x01')],
  ['asf', starts('30 26 b2 75 8e 66 cf 11')],
  ['ogg', says('OggS')],
  ['mxf', starts('06 0e 2b 34 02 05 01 01')],
  ['gxf', starts('00 00 00 00 01 bc')],
  ['wtv', starts('b7 d8 00 20 37 49 da 11')],
  ['nut', says('nut/multimedia container\0')],
  ['rm', says('.RMF')],
  ['ivf', says('DKIF')],
  ['yuv4mpegpipe', says('YUV4MPEG2 ')],
  ['gif', says('GIF8')],
  ['mpeg', starts('00 00 01 ba')],
  ['mpegvideo', starts('00 00 01 b3')],
  ['dv', starts('1f 07 00')],
  ['hevc', isRawHevc],
  ['h264', isRawH264],
  ['mpegts', isTransportStream],
  ['wav', (head) => says('RIFF')(head) && says('WAVE', 8)(head)],
  ['flac', says('fLaC')],
  ['aiff', (head) => says('FORM')(head) && says('AIF', 8)(head)],
  ['mp3', (head) => says('ID3')(head) || isFrameOfMp3(head)],
  ['aac', (head) => head[0] === 0xff && (head[1]! & 0xf6) === 0xf0],
];

/** The demuxer for a file that begins with these bytes, or null where it is no video container. */
export function demuxerOf(head: Buffer): string | null {
  return containers.find(([, matches]) => matches(head))?.[0] ?? null;
}

/** Files that people take for videos, and what to do about each. */
const notVideos: [what: string, advice: string, matches: (head: Buffer) => boolean][] = [
  ['an empty file', 'copy it again', (head) => head.length === 0],
  [
    'a picture',
    'name a video',
    (head) => /^(\xff\xd8\xff|\x89PNG|RIFF....WEBP|BM|II\*\0|MM\0\*)/s.test(head.toString('latin1')),
  ],
  ['an archive', 'unpack it first', (head) => /^(PK\x03\x04|\x1f\x8b|Rar!|7z\xbc\xaf)/.test(head.toString('latin1'))],
  ['a PDF', 'name a video', says('%PDF')],
  [
    'a playlist',
    'name the video itself',
    (head) => /^\s*(#EXTM3U|\[playlist\]|<\?xml[^>]*>\s*<(MPD|smil))/.test(head.toString('latin1')),
  ],
  ['a concat script', 'join its parts into one file first', says('ffconcat')],
  [
    'subtitles',
    'name them under captions',
    (head) => /^(\xef\xbb\xbf)?(WEBVTT|\d+\r?\n\d\d:\d\d:\d\d,)/.test(head.toString('latin1')),
  ],
  [
    'a text',
    'name a video',
    (head) => !head.includes(0) && /^[\t\n\r\x1b -~\x80-\xff]*$/.test(head.toString('latin1')),
  ],
];

/** Where a source lies, and what the manifest calls it: messages say the latter. */
export interface SourceName {
  path: string;
  name: string;
}

export interface SourceFile extends SourceName {
  fd: number;
  /** ffmpeg's name of the container. */
  demuxer: string;
}

export const missingSource = ({ path, name }: SourceName) =>
  `its source ${name} does not exist${path === name ? '' : ` (there is no ${path})`}`;

/** A system call on a source failed: what that means, and what helps. */
function unreadable({ path, name }: SourceName, error: unknown): unknown {
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return new CatalogueError(missingSource({ path, name }));
  if (code === 'EACCES' || code === 'EPERM')
    return new CatalogueError(
      `its source ${name} cannot be read: permission denied; let ${userInfo().username} read it and enter its folders`,
    );
  if (code === 'ELOOP') return new CatalogueError(`its source ${name} is a symbolic link that leads to itself`);
  return code === 'EIO' ? new CatalogueError(`its source ${name} cannot be read: the disk reports an error`) : error;
}

const CHUNK_BYTES = 1024 * 1024;

/** Changes whenever the file is written to, or another takes its name. */
const stampOf = (facts: BigIntStats) => `${facts.size} ${facts.mtimeNs} ${facts.ctimeNs} ${facts.ino}`;

interface SourceStamp {
  stamp: string;
  /** When its content was last written. A file that is moved into place keeps that time. */
  writtenMs: number;
  /** When anything of it changed, its name included. */
  changedMs: number;
}

function checkedStamp({ name }: SourceName, facts: BigIntStats): SourceStamp {
  if (facts.isDirectory()) throw new CatalogueError(`its source ${name} is a folder, not a video file`);
  if (!facts.isFile()) throw new CatalogueError(`its source ${name} is a pipe or a device, not a video file`);
  const writtenMs = Number(facts.mtimeMs);
  return { stamp: stampOf(facts), writtenMs, changedMs: Math.max(writtenMs, Number(facts.ctimeMs)) };
}

/** Null where there is no such file; throws where it is none that can be read twice. */
export function stampSource(source: SourceName): SourceStamp | null {
  let facts: BigIntStats | undefined;
  try {
    facts = statSync(source.path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    if (codeOf(error) === 'ENOTDIR') return null;
    throw unreadable(source, error);
  }
  return facts === undefined ? null : checkedStamp(source, facts);
}

export async function stampOpen(source: SourceName, file: FileHandle): Promise<SourceStamp> {
  return checkedStamp(source, await file.stat({ bigint: true }));
}

/** Without O_NONBLOCK the open of a pipe would wait for a writer, and nothing could interrupt it. */
export const openToRead = (source: SourceName) =>
  open(source.path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error) => {
    throw unreadable(source, error);
  });

export async function digestOpen(file: FileHandle, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  const bytes = file.createReadStream({ start: 0, autoClose: false, highWaterMark: CHUNK_BYTES });
  for await (const chunk of bytes) {
    signal?.throwIfAborted();
    hash.update(chunk as Buffer);
  }
  return hash.digest('hex');
}

async function recognise({ name }: SourceName, file: FileHandle): Promise<string> {
  const buffer = Buffer.alloc(HEAD_BYTES);
  const { bytesRead } = await file.read(buffer, 0, HEAD_BYTES, 0);
  const head = buffer.subarray(0, bytesRead);
  const demuxer = demuxerOf(head);
  if (demuxer !== null) return demuxer;
  const [what, advice] = notVideos.find(([, , matches]) => matches(head)) ?? [
    'in a format that is not known here',
    'convert it to MP4 or Matroska first',
  ];
  throw new CatalogueError(`${name} is not a video file: it is ${what}; ${advice}`);
}

/** What the tracks of an MP4 file hold; nothing where its headers are damaged, which ffmpeg says better. */
async function readSampleEntries(file: FileHandle, size: number): Promise<string[]> {
  try {
    const moov = (await topLevelBoxes(file, size)).find((box) => box.type === 'moov');
    if (moov === undefined) return [];
    const { buffer, box } = await readBox(file, moov);
    const tracks = childrenOf(buffer, box.body, box.end).filter((each) => each.type === 'trak');
    return tracks.flatMap((track) => {
      const stsd = child(buffer, track, 'mdia', 'minf', 'stbl', 'stsd');
      return stsd === undefined ? [] : childrenOf(buffer, stsd.body + 8, stsd.end).map(({ type }) => type);
    });
  } catch (error) {
    if (error instanceof MediaFormatError || error instanceof RangeError) return [];
    throw error;
  }
}

/** Sample entries of tracks that are encrypted (ISO/IEC 23001-7, and what iTunes sells). */
const encrypted = ['encv', 'enca', 'drmi', 'drms'];

/** ffmpeg would decode noise and call it damage. */
async function checkNotEncrypted({ name }: SourceName, file: FileHandle): Promise<void> {
  const entries = await readSampleEntries(file, (await file.stat()).size);
  if (entries.some((entry) => encrypted.includes(entry)))
    throw new CatalogueError(
      `${name} is encrypted (DRM): only its publisher can decrypt it; use the unprotected original`,
    );
}

/** Opens a source for ffmpeg, to be closed by the caller. */
export async function openSource(source: SourceName): Promise<SourceFile & { file: FileHandle }> {
  const file = await openToRead(source);
  try {
    await stampOpen(source, file);
    const demuxer = await recognise(source, file);
    if (demuxer === 'mov') await checkNotEncrypted(source, file);
    return { ...source, fd: file.fd, file, demuxer };
  } catch (error) {
    await file.close();
    throw error;
  }
}

interface ExpectedSource extends SourceName {
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
  const { path, name } = expected;
  const { file, ...source } = await openSource({ path, name });
  const check = async () => {
    if ((await digestOpen(file, signal)) === expected.sha256) return;
    throw new CatalogueError(`${name} was changed while the build read it; build again`);
  };
  try {
    if ((await stampOpen(expected, file)).stamp !== expected.stamp) await check();
    const result = await read(source);
    await check();
    return result;
  } finally {
    await file.close();
  }
}
