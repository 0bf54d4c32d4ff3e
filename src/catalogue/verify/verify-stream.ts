// One stream, published or staged: its progressive files, HLS, poster and thumbnails.
import { dirname, join } from 'node:path';
import { codeOf } from '../catalogue-error.ts';
import { type CatalogueDocument, isRootRelativePath, type Stream } from '../document.ts';
import type { PublishLine } from '../ledger.ts';
import type { Rendition } from '../manifest.ts';
import { MediaFormatError } from '../media/boxes.ts';
import { readMovie } from '../media/fragments.ts';
import { FilesOnce, FindingList, type Findings, verifyDigests, verifyForms } from './verify-files.ts';
import { MOST_APART_SECONDS, verifyHls } from './verify-hls.ts';

async function reading(findings: Findings, path: string, check: (say: (text: string) => void) => Promise<void>) {
  const say = (text: string) => findings.fault(`${path}: ${text}`);
  try {
    await check(say);
  } catch (error) {
    if (error instanceof MediaFormatError) say(error.message);
    else if (codeOf(error) === 'ENOENT') say('does not exist');
    else throw error;
  }
}

function checkSoundLength(say: (text: string) => void, sound: number, picture: number): void {
  if (Math.abs(sound - picture) > MOST_APART_SECONDS)
    say(`its sound lasts ${sound.toFixed(3)} s, its picture ${picture.toFixed(3)} s`);
}

function verifyProgressive(files: FilesOnce, stream: Stream, rendition: Rendition, path: string, findings: Findings) {
  return reading(findings, path, async (say) => {
    const { tracks, faststart, dataBytes } = await readMovie(files.media(path));
    if (!faststart) say('is not made for progressive play: moov comes after the data');
    const video = tracks.find((track) => track.kind === 'video');
    if (video === undefined) return say('has no video');
    if (!/^avc1\.64/.test(video.codec)) say(`its video is ${video.codec}, not H.264 High`);
    const [long, short] = [Math.max(video.width, video.height), Math.min(video.width, video.height)];
    if (long > Math.max(rendition.width, rendition.height) || short > Math.min(rendition.width, rendition.height))
      say(`is ${video.width}x${video.height}, larger than ${rendition.label}`);
    const seconds = video.samples.duration / video.timescale;
    if (Math.abs(seconds - stream.duration_s) > 0.1) say(`lasts ${seconds.toFixed(3)} s, not ${stream.duration_s} s`);
    const fps = video.samples.count / seconds;
    // A small rung of a fast stream shows every second frame.
    if (![stream.fps, stream.fps / 2].some((each) => Math.abs(fps - each) < 0.02 * each))
      say(`shows ${fps} frames a second`);
    const described = tracks.reduce((sum, track) => sum + track.samples.bytes, 0);
    if (described > dataBytes) say(`describes ${described} bytes of samples and has ${dataBytes}`);
    for (const track of tracks) {
      if (track.kind === 'audio') checkSoundLength(say, track.samples.duration / track.timescale, seconds);
      if (track.kind === 'audio' && track.codec !== 'mp4a.40.2') say(`its sound is ${track.codec}, not AAC-LC`);
      if (track.kind === 'audio' && track.sampleRate !== 48_000) say(`its sound has ${track.sampleRate} Hz`);
    }
  });
}

/** Width and height from the frame header of a JPEG; null where it is none, or not a whole one. */
function jpegSize(bytes: Buffer): { width: number; height: number } | null {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8 || bytes.readUInt16BE(bytes.length - 2) !== 0xffd9)
    return null;
  for (let at = 2; at + 9 <= bytes.length; ) {
    const marker = bytes.readUInt16BE(at);
    if (marker >= 0xffc0 && marker <= 0xffc2)
      return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return null;
}

const seconds = (clock: string) => clock.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);

async function verifyCues(files: FilesOnce, stream: Stream, path: string, say: (text: string) => void): Promise<void> {
  const text = files.text(path);
  if (!text.startsWith('WEBVTT\n')) return say('does not start with WEBVTT');
  const cue = /^([\d:.]+) --> ([\d:.]+)\n(\S+)#xywh=(\d+),(\d+),(\d+),(\d+)$/gm;
  const sheets = new Map<string, { width: number; height: number } | null>();
  let end = 0;
  for (const match of text.matchAll(cue)) {
    const [from, to] = [seconds(match[1]!), seconds(match[2]!)];
    if (from !== end || to <= from) say(`has a gap or an overlap at ${match[1]}`);
    end = to;
    const [x, y, width, height] = match.slice(4).map(Number) as [number, number, number, number];
    const sheet = match[3]!;
    if (!/^[\w-]+\.jpg$/.test(sheet)) return say(`names ${sheet}`);
    if (!sheets.has(sheet)) {
      const bytes = files.find(join(dirname(path), sheet));
      sheets.set(sheet, bytes && jpegSize(bytes));
    }
    const size = sheets.get(sheet);
    if (!size) return say(`names ${sheet}, which is not a whole JPEG`);
    if (x + width > size.width || y + height > size.height) say(`has a cue at ${match[1]} outside its sheet`);
  }
  if (Math.abs(end - stream.duration_s) > 0.05) say(`ends at ${end} s, the stream at ${stream.duration_s} s`);
}

const captionPaths = (captions: unknown): unknown[] =>
  Array.isArray(captions) ? captions.map((each) => (each as { path?: unknown } | null)?.path) : [];

const isVtt = (text: string) => text.startsWith('WEBVTT\n') && text.includes(' --> ');

/** Checks what a stream names, as far as `isNew` says so. */
export async function verifyStream(
  files: FilesOnce,
  stream: Stream,
  renditions: Map<string, Rendition>,
  findings: Findings,
  isNew: (path: string) => boolean = () => true,
): Promise<void> {
  for (const [label, path] of Object.entries(stream.progressive)) {
    if (isNew(path.slice(1))) await verifyProgressive(files, stream, renditions.get(label)!, path.slice(1), findings);
  }
  if (stream.hls !== null && isNew(stream.hls.slice(1))) await verifyHls(files, stream, findings);
  const picture = (value: unknown) => (isRootRelativePath(value) && isNew(value.slice(1)) ? value.slice(1) : null);
  const [poster, thumbnails] = [picture(stream.poster), picture(stream.thumbnails)];
  if (poster !== null)
    await reading(findings, poster, async (say) => {
      if (jpegSize(files.bytes(poster)) === null) say('is not a whole JPEG');
    });
  const texts = [...captionPaths(stream.captions), stream.chapters].map(picture).filter((path) => path !== null);
  for (const path of texts)
    await reading(findings, path, async (say) => {
      if (!isVtt(files.text(path))) say('is not WebVTT with at least one cue');
    });
  if (thumbnails !== null) await reading(findings, thumbnails, (say) => verifyCues(files, stream, thumbnails, say));
}

export interface StagedFiles {
  line: PublishLine;
  /** Where the stream's files lie, by their paths below `media/<id>/`. */
  folder: string;
}

interface StageFaults {
  id: string;
  folder: string;
  faults: string[];
}

/**
 * The staged streams that must not be published as they are: a fault found here costs an encode, a fault found later is
 * published for ever. Of a stream that gains something, only what is new is checked.
 */
export async function verifyStage(
  staged: StagedFiles[],
  document: CatalogueDocument,
  signal?: AbortSignal,
): Promise<StageFaults[]> {
  const damaged: StageFaults[] = [];
  const renditions = new Map(document.renditions.map((rendition) => [rendition.label, rendition]));
  const streams = new Map(document.streams.map((stream) => [stream.id, stream]));
  for (const { line, folder } of staged) {
    signal?.throwIfAborted();
    const findings = new FindingList();
    const files = new FilesOnce((path) => join(folder, path.slice(`media/${line.id}/`.length)));
    const paths = Object.keys(line.files);
    const digests = Object.entries(line.files).map(([path, { sha256 }]) => [path, sha256] as const);
    await verifyDigests(files, digests, 'staging', findings, signal);
    verifyForms(files, paths, findings);
    const stream = streams.get(line.id);
    if (stream !== undefined) await verifyStream(files, stream, renditions, findings, (path) => path in line.files);
    if (findings.faults.length > 0) damaged.push({ id: line.id, folder, faults: findings.faults });
  }
  return damaged;
}
