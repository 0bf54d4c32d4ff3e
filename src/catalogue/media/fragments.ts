// What the headers of an MP4 file say: of each track its codec, size, timescale and samples; of a fragmented file with
// one track where each fragment lies, when it plays, and whether it starts with a keyframe. Playlists are written from
// these, and verified against them.

import { open } from 'node:fs/promises';
import {
  type Box,
  type ByteSource,
  child,
  childrenOf,
  inMemory,
  MediaFormatError,
  readBox,
  requireChild,
  topLevelBoxes,
} from './boxes.ts';

interface SampleDefaults {
  duration: number;
  flags: number;
}

/** What `moov` says of a track. */
export interface Track {
  kind: 'video' | 'audio' | 'other';
  timescale: number;
  /** RFC 6381 codec string, as HLS CODECS wants it. */
  codec: string;
  width: number;
  height: number;
  sampleRate: number;
  channels: number;
  samples: { count: number; duration: number; bytes: number };
  /** Defaults of `trex` for fragments. */
  defaults: SampleDefaults;
}

const hex = (value: number) => value.toString(16).padStart(2, '0');

/** `avc1.PPCCLL` from the first bytes of AVCDecoderConfigurationRecord. */
function avcCodec(buffer: Buffer, entry: Box): string {
  const avcC = childrenOf(buffer, entry.body + 78, entry.end).find((box) => box.type === 'avcC');
  if (avcC === undefined) throw new MediaFormatError('avcC is missing');
  return `avc1.${hex(buffer[avcC.body + 1]!)}${hex(buffer[avcC.body + 2]!)}${hex(buffer[avcC.body + 3]!)}`;
}

/** Descriptors (ISO/IEC 14496-1) carry their length in groups of seven bits. */
function descriptor(buffer: Buffer, at: number): { tag: number; body: number } {
  let body = at + 1;
  while (body < buffer.length && (buffer[body]! & 0x80) !== 0) body++;
  return { tag: buffer[at]!, body: body + 1 };
}

/** Channels by the channel configuration of an AudioSpecificConfig. */
const CHANNELS = [0, 1, 2, 3, 4, 5, 6, 8];

/** `mp4a.40.N` and the channels, from the AudioSpecificConfig inside `esds`: the sample entry says two of any sound. */
function aacTrack(buffer: Buffer, entry: Box): { codec: string; channels: number } {
  const esds = childrenOf(buffer, entry.body + 28, entry.end).find((box) => box.type === 'esds');
  if (esds === undefined) throw new MediaFormatError('esds is missing');
  const es = descriptor(buffer, esds.body + 4);
  const config = descriptor(buffer, es.body + 3);
  const specific = descriptor(buffer, config.body + 13);
  if (es.tag !== 3 || config.tag !== 4 || specific.tag !== 5) throw new MediaFormatError('esds is not understood');
  const stated = CHANNELS[(buffer[specific.body + 1]! >> 3) & 0xf];
  return { codec: `mp4a.40.${buffer[specific.body]! >> 3}`, channels: stated || buffer.readUInt16BE(entry.body + 16) };
}

function sampleEntry(buffer: Buffer, stbl: Box): Pick<Track, 'codec' | 'width' | 'height' | 'sampleRate' | 'channels'> {
  const stsd = requireChild(buffer, stbl, 'stsd');
  const entry = childrenOf(buffer, stsd.body + 8, stsd.end)[0];
  if (entry === undefined) throw new MediaFormatError('stsd is empty');
  const none = { width: 0, height: 0, sampleRate: 0, channels: 0 };
  if (entry.type === 'avc1') {
    const width = buffer.readUInt16BE(entry.body + 24);
    const height = buffer.readUInt16BE(entry.body + 26);
    return { ...none, codec: avcCodec(buffer, entry), width, height };
  }
  if (entry.type === 'mp4a') {
    return { ...none, ...aacTrack(buffer, entry), sampleRate: buffer.readUInt16BE(entry.body + 24) };
  }
  return { ...none, codec: entry.type };
}

function sampleBytes(buffer: Buffer, stbl: Box): number {
  const stsz = requireChild(buffer, stbl, 'stsz');
  const [each, count] = [buffer.readUInt32BE(stsz.body + 4), buffer.readUInt32BE(stsz.body + 8)];
  if (each !== 0) return each * count;
  let bytes = 0;
  for (let i = 0; i < count; i++) bytes += buffer.readUInt32BE(stsz.body + 12 + i * 4);
  return bytes;
}

function sampleTotals(buffer: Buffer, stbl: Box): Track['samples'] {
  const totals = { count: 0, duration: 0, bytes: sampleBytes(buffer, stbl) };
  const stts = requireChild(buffer, stbl, 'stts');
  const runs = buffer.readUInt32BE(stts.body + 4);
  for (let i = 0; i < runs; i++) {
    const at = stts.body + 8 + i * 8;
    totals.count += buffer.readUInt32BE(at);
    totals.duration += buffer.readUInt32BE(at) * buffer.readUInt32BE(at + 4);
  }
  return totals;
}

function trackDefaults(buffer: Buffer, moov: Box, id: number): SampleDefaults {
  const mvex = child(buffer, moov, 'mvex');
  const boxes = mvex === undefined ? [] : childrenOf(buffer, mvex.body, mvex.end);
  const trex = boxes.find((box) => box.type === 'trex' && buffer.readUInt32BE(box.body + 4) === id);
  if (trex === undefined) return { duration: 0, flags: 0 };
  return { duration: buffer.readUInt32BE(trex.body + 12), flags: buffer.readUInt32BE(trex.body + 20) };
}

function readTrack(buffer: Buffer, moov: Box, trak: Box): Track {
  const tkhd = requireChild(buffer, trak, 'tkhd');
  const id = buffer.readUInt32BE(tkhd.body + (buffer[tkhd.body] === 1 ? 20 : 12));
  const mdhd = requireChild(buffer, trak, 'mdia', 'mdhd');
  const timescale = buffer.readUInt32BE(mdhd.body + (buffer[mdhd.body] === 1 ? 20 : 12));
  if (timescale === 0) throw new MediaFormatError('a track has no timescale');
  const hdlr = requireChild(buffer, trak, 'mdia', 'hdlr');
  const handler = buffer.toString('latin1', hdlr.body + 8, hdlr.body + 12);
  const stbl = requireChild(buffer, trak, 'mdia', 'minf', 'stbl');
  return {
    kind: handler === 'vide' ? 'video' : handler === 'soun' ? 'audio' : 'other',
    timescale,
    ...sampleEntry(buffer, stbl),
    samples: sampleTotals(buffer, stbl),
    defaults: trackDefaults(buffer, moov, id),
  };
}

function readTracks(buffer: Buffer, moov: Box): Track[] {
  const traks = childrenOf(buffer, moov.body, moov.end).filter((box) => box.type === 'trak');
  return traks.map((trak) => readTrack(buffer, moov, trak));
}

export interface Fragment {
  offset: number;
  size: number;
  /** Decode time of the first sample and the sum of sample durations, in timescale units. */
  start: number;
  duration: number;
  sampleCount: number;
  startsWithKey: boolean;
  /** Bytes of the samples, by the header; null where it gives them no sizes of their own. */
  sampleBytes: number | null;
  /** Bytes of data that are really there. */
  dataBytes: number;
}

export interface FragmentedFile {
  initSize: number;
  track: Track;
  fragments: Fragment[];
}

const NOT_SYNC = 0x10000;

/** A file by its path, or the whole of its bytes. */
export type MediaFile = string | Buffer;

interface FragmentDefaults extends SampleDefaults {
  sampleBytes: number | null;
}

function fragmentDefaults(buffer: Buffer, traf: Box, track: Track): FragmentDefaults {
  const tfhd = requireChild(buffer, traf, 'tfhd');
  const flags = buffer.readUInt32BE(tfhd.body) & 0xffffff;
  const defaults: FragmentDefaults = { ...track.defaults, sampleBytes: null };
  let at = tfhd.body + 8;
  if (flags & 0x1) at += 8;
  if (flags & 0x2) at += 4;
  if (flags & 0x8) {
    defaults.duration = buffer.readUInt32BE(at);
    at += 4;
  }
  if (flags & 0x10) {
    defaults.sampleBytes = buffer.readUInt32BE(at);
    at += 4;
  }
  if (flags & 0x20) defaults.flags = buffer.readUInt32BE(at);
  return defaults;
}

function decodeTime(buffer: Buffer, traf: Box): number {
  const tfdt = requireChild(buffer, traf, 'tfdt');
  return buffer[tfdt.body] === 1 ? Number(buffer.readBigUInt64BE(tfdt.body + 4)) : buffer.readUInt32BE(tfdt.body + 4);
}

interface SampleRun {
  sampleCount: number;
  duration: number;
  bytes: number | null;
  firstFlags: number;
}

function readRun(buffer: Buffer, trun: Box, defaults: FragmentDefaults): SampleRun {
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
  let bytes = defaults.sampleBytes === null ? null : defaults.sampleBytes * sampleCount;
  if (flags & 0x200) {
    bytes = 0;
    for (let i = 0; i < sampleCount; i++) bytes += buffer.readUInt32BE(at + i * stride + sizeAt);
  }
  return { sampleCount, duration, bytes, firstFlags };
}

function readFragment(buffer: Buffer, moof: Box, track: Track): Omit<Fragment, 'offset' | 'size' | 'dataBytes'> {
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
    sampleBytes: runs.some((run) => run.bytes === null) ? null : runs.reduce((sum, run) => sum + run.bytes!, 0),
  };
}

/** The fragments among a file's boxes. */
async function fragmentsAmong(file: ByteSource, boxes: Box[], track: Track): Promise<Fragment[]> {
  const fragments: Fragment[] = [];
  for (const [i, box] of boxes.entries()) {
    if (box.type !== 'moof') continue;
    const data = boxes[i + 1];
    if (data?.type !== 'mdat') throw new MediaFormatError('a fragment has no data');
    const moof = await readBox(file, box);
    const place = { offset: box.start, size: data.end - box.start, dataBytes: data.end - data.body };
    fragments.push({ ...place, ...readFragment(moof.buffer, moof.box, track) });
  }
  return fragments;
}

async function moovOf(file: ByteSource, boxes: Box[]): Promise<{ buffer: Buffer; box: Box; end: number }> {
  const moov = boxes.find((box) => box.type === 'moov');
  if (moov === undefined) throw new MediaFormatError('moov is missing');
  return { ...(await readBox(file, moov)), end: moov.end };
}

async function withBoxes<T>(
  from: MediaFile,
  read: (file: ByteSource, boxes: Box[], size: number) => Promise<T>,
): Promise<T> {
  const handle = typeof from === 'string' ? await open(from, 'r') : null;
  try {
    const size = handle === null ? from.length : (await handle.stat()).size;
    const file = handle ?? inMemory(from as Buffer);
    return await read(file, await topLevelBoxes(file, size), size);
  } catch (error) {
    // A number in a header points outside its box: for a caller as wrong as a box that runs past the end.
    if (error instanceof RangeError) throw new MediaFormatError('a header is damaged');
    throw error;
  } finally {
    await handle?.close();
  }
}

/** Reads the headers of a fragmented file; throws MediaFormatError where it is not one. */
export function readFragments(from: MediaFile): Promise<FragmentedFile> {
  return withBoxes(from, async (file, boxes) => {
    const moov = await moovOf(file, boxes);
    if (child(moov.buffer, moov.box, 'mvex') === undefined) throw new MediaFormatError('the file is not fragmented');
    const tracks = readTracks(moov.buffer, moov.box);
    const track = tracks[0];
    if (track === undefined || tracks.length > 1) throw new MediaFormatError(`${tracks.length} tracks instead of one`);
    return { initSize: moov.end, track, fragments: await fragmentsAmong(file, boxes, track) };
  });
}

/** The fragments of a segment file; `track` comes from its init file. */
export function readSegment(from: MediaFile, track: Track): Promise<{ size: number; fragments: Fragment[] }> {
  return withBoxes(from, async (file, boxes, size) => ({ size, fragments: await fragmentsAmong(file, boxes, track) }));
}

interface Movie {
  tracks: Track[];
  /** Whether `moov` comes before the data. */
  faststart: boolean;
  dataBytes: number;
}

/** Reads the headers of a file that is not fragmented. */
export function readMovie(from: MediaFile): Promise<Movie> {
  return withBoxes(from, async (file, boxes) => {
    const moov = await moovOf(file, boxes);
    const data = boxes.filter((box) => box.type === 'mdat');
    return {
      tracks: readTracks(moov.buffer, moov.box),
      faststart: data.length > 0 && moov.end <= data[0]!.start,
      dataBytes: data.reduce((sum, box) => sum + box.end - box.body, 0),
    };
  });
}
