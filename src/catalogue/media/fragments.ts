// The fragments of a fragmented MP4 file with one track: where each lies, when it plays, and whether it starts with a
// keyframe. Playlists are written from these, and verified against them.
import { type FileHandle, open } from 'node:fs/promises';
import { type Box, child, childrenOf, MediaFormatError, readBox, requireChild, topLevelBoxes } from './boxes.ts';
import { readTracks, type SampleDefaults, type Track } from './tracks.ts';

export interface Fragment {
  offset: number;
  size: number;
  /** Decode time of the first sample and the sum of sample durations, in timescale units. */
  start: number;
  duration: number;
  sampleCount: number;
  startsWithKey: boolean;
}

export interface FragmentedFile {
  initSize: number;
  track: Track;
  fragments: Fragment[];
}

const NOT_SYNC = 0x10000;

function fragmentDefaults(buffer: Buffer, traf: Box, track: Track): SampleDefaults {
  const tfhd = requireChild(buffer, traf, 'tfhd');
  const flags = buffer.readUInt32BE(tfhd.body) & 0xffffff;
  const defaults = { ...track.defaults };
  let at = tfhd.body + 8;
  if (flags & 0x1) at += 8;
  if (flags & 0x2) at += 4;
  if (flags & 0x8) {
    defaults.duration = buffer.readUInt32BE(at);
    at += 4;
  }
  if (flags & 0x10) at += 4;
  if (flags & 0x20) defaults.flags = buffer.readUInt32BE(at);
  return defaults;
}

function decodeTime(buffer: Buffer, traf: Box): number {
  const tfdt = requireChild(buffer, traf, 'tfdt');
  return buffer[tfdt.body] === 1 ? Number(buffer.readBigUInt64BE(tfdt.body + 4)) : buffer.readUInt32BE(tfdt.body + 4);
}

interface Run {
  sampleCount: number;
  duration: number;
  firstFlags: number;
}

function readRun(buffer: Buffer, trun: Box, defaults: SampleDefaults): Run {
  const flags = buffer.readUInt32BE(trun.body) & 0xffffff;
  const sampleCount = buffer.readUInt32BE(trun.body + 4);
  let at = trun.body + 8 + (flags & 0x1 ? 4 : 0);
  let firstFlags = defaults.flags;
  if (flags & 0x4) {
    firstFlags = buffer.readUInt32BE(at);
    at += 4;
  }
  const stride = [0x100, 0x200, 0x400, 0x800].filter((bit) => flags & bit).length * 4;
  if (at + stride * sampleCount > trun.end) throw new MediaFormatError('a fragment names more samples than it has');
  const sizeAt = flags & 0x100 ? 4 : 0;
  const flagsAt = sizeAt + (flags & 0x200 ? 4 : 0);
  if (flags & 0x400 && sampleCount > 0) firstFlags = buffer.readUInt32BE(at + flagsAt);
  let duration = 0;
  if (flags & 0x100) for (let i = 0; i < sampleCount; i++) duration += buffer.readUInt32BE(at + i * stride);
  else duration = defaults.duration * sampleCount;
  return { sampleCount, duration, firstFlags };
}

function readFragment(buffer: Buffer, moof: Box, track: Track): Omit<Fragment, 'offset' | 'size'> {
  const traf = requireChild(buffer, moof, 'traf');
  const defaults = fragmentDefaults(buffer, traf, track);
  const runs = childrenOf(buffer, traf.body, traf.end)
    .filter((box) => box.type === 'trun')
    .map((trun) => readRun(buffer, trun, defaults));
  const first = runs[0];
  if (first === undefined) throw new MediaFormatError('a fragment has no samples');
  return {
    start: decodeTime(buffer, traf),
    duration: runs.reduce((sum, run) => sum + run.duration, 0),
    sampleCount: runs.reduce((sum, run) => sum + run.sampleCount, 0),
    startsWithKey: (first.firstFlags & NOT_SYNC) === 0,
  };
}

/** The fragments among a file's boxes. */
async function fragmentsAmong(file: FileHandle, boxes: Box[], track: Track): Promise<Fragment[]> {
  const fragments: Fragment[] = [];
  for (const [i, box] of boxes.entries()) {
    if (box.type !== 'moof') continue;
    const data = boxes[i + 1];
    if (data?.type !== 'mdat') throw new MediaFormatError('a fragment has no data');
    const moof = await readBox(file, box);
    fragments.push({ offset: box.start, size: data.end - box.start, ...readFragment(moof.buffer, moof.box, track) });
  }
  return fragments;
}

async function moovOf(file: FileHandle, boxes: Box[]): Promise<{ buffer: Buffer; box: Box; end: number }> {
  const moov = boxes.find((box) => box.type === 'moov');
  if (moov === undefined) throw new MediaFormatError('moov is missing');
  return { ...(await readBox(file, moov)), end: moov.end };
}

async function withBoxes<T>(
  path: string,
  read: (file: FileHandle, boxes: Box[], size: number) => Promise<T>,
): Promise<T> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    return await read(file, await topLevelBoxes(file, size), size);
  } catch (error) {
    // A number in a header points outside its box: for a caller as wrong as a box that runs past the end.
    if (error instanceof RangeError) throw new MediaFormatError('a header is damaged');
    throw error;
  } finally {
    await file.close();
  }
}

/** Reads the headers of a fragmented file; throws MediaFormatError where it is not one. */
export function readFragments(path: string): Promise<FragmentedFile> {
  return withBoxes(path, async (file, boxes) => {
    const moov = await moovOf(file, boxes);
    if (child(moov.buffer, moov.box, 'mvex') === undefined) throw new MediaFormatError('the file is not fragmented');
    const tracks = readTracks(moov.buffer, moov.box);
    const track = tracks[0];
    if (track === undefined || tracks.length > 1) throw new MediaFormatError(`${tracks.length} tracks instead of one`);
    return { initSize: moov.end, track, fragments: await fragmentsAmong(file, boxes, track) };
  });
}

/** The fragments of a segment file; `track` comes from its init file. */
export function readSegment(path: string, track: Track): Promise<{ size: number; fragments: Fragment[] }> {
  return withBoxes(path, async (file, boxes, size) => ({ size, fragments: await fragmentsAmong(file, boxes, track) }));
}

/** The tracks of a file that is not fragmented, and whether `moov` comes before the data (faststart). */
export function readMovie(path: string): Promise<{ tracks: Track[]; faststart: boolean }> {
  return withBoxes(path, async (file, boxes) => {
    const moov = await moovOf(file, boxes);
    const data = boxes.find((box) => box.type === 'mdat');
    return { tracks: readTracks(moov.buffer, moov.box), faststart: data !== undefined && moov.end <= data.start };
  });
}
