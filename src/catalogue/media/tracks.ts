// What a `moov` box says of each track: codec string, size, timescale and, for files that are not fragmented, the samples'
// count and duration.
import { type Box, child, childrenOf, MediaFormatError, requireChild } from './boxes.ts';

export interface SampleDefaults {
  duration: number;
  flags: number;
}

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

/** `mp4a.40.N` from the AudioSpecificConfig inside `esds`. */
function aacCodec(buffer: Buffer, entry: Box): string {
  const esds = childrenOf(buffer, entry.body + 28, entry.end).find((box) => box.type === 'esds');
  if (esds === undefined) throw new MediaFormatError('esds is missing');
  const es = descriptor(buffer, esds.body + 4);
  const config = descriptor(buffer, es.body + 3);
  const specific = descriptor(buffer, config.body + 13);
  if (es.tag !== 3 || config.tag !== 4 || specific.tag !== 5) throw new MediaFormatError('esds is not understood');
  return `mp4a.40.${buffer[specific.body]! >> 3}`;
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
    const channels = buffer.readUInt16BE(entry.body + 16);
    const sampleRate = buffer.readUInt16BE(entry.body + 24);
    return { ...none, codec: aacCodec(buffer, entry), channels, sampleRate };
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

export function readTracks(buffer: Buffer, moov: Box): Track[] {
  const traks = childrenOf(buffer, moov.body, moov.end).filter((box) => box.type === 'trak');
  return traks.map((trak) => readTrack(buffer, moov, trak));
}
