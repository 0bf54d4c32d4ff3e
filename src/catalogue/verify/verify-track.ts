// One HLS track: its media playlist against the bytes of its fragments.
import { dirname, join, normalize } from 'node:path';
import { codeOf } from '../fault.ts';
import { MediaFormatError } from '../media/boxes.ts';
import { type Fragment, readFragments, readSegment } from '../media/fragments.ts';
import { type MediaPlaylist, PlaylistError, parseMediaPlaylist } from '../media/read-playlist.ts';
import { type BitRates, bitRates, TARGET_SECONDS } from '../media/segments.ts';
import type { Track } from '../media/tracks.ts';
import type { FilesOnce } from './files-once.ts';
import type { Findings } from './finding.ts';

/** A track as its bytes show it, whatever its playlist says. */
export interface MeasuredTrack {
  track: Track;
  rates: BitRates;
  seconds: number;
  /** As the playlist declares it: the sum of EXTINF. */
  declaredSeconds: number;
  iframesOnly: boolean;
  fps: number;
  /** Where segments start, in seconds. */
  starts: number[];
}

/** The file an address in a playlist means; null where it leads out of the folder of the stream. */
export function fileOf(playlistPath: string, uri: string): string | null {
  // As playlists are written here: beside them, or in a folder there.
  if (/^\w[\w-]*(\/\w[\w-]*)?\.\w+$/.test(uri)) return `${dirname(playlistPath)}/${uri}`;
  if (uri === '' || /^[a-z]+:|^\/|[?#\\%]/i.test(uri)) return null;
  const path = normalize(join(dirname(playlistPath), uri));
  return path.startsWith(`${playlistPath.split('/').slice(0, 2).join('/')}/`) ? path : null;
}

interface TrackBytes {
  track: Track;
  /** Fragments of each segment, and the segment's size. */
  segments: { fragments: Fragment[]; size: number }[];
}

async function readByRanges(files: FilesOnce, path: string, playlist: MediaPlaylist): Promise<TrackBytes> {
  const name = fileOf(path, playlist.map!.uri);
  if (name === null) throw new PlaylistError(`names ${playlist.map!.uri}, which is outside the stream`);
  const file = await readFragments(files.media(name));
  if (playlist.map!.range!.offset !== 0 || playlist.map!.range!.size !== file.initSize)
    throw new PlaylistError('has an EXT-X-MAP that is not the header of the file');
  let next = file.initSize;
  const segments = playlist.segments.map((segment, i) => {
    if (fileOf(path, segment.uri) !== name) throw new PlaylistError(`has segment ${i} in another file than its header`);
    const { offset, size } = segment.range ?? { offset: -1, size: 0 };
    const fragments = file.fragments.filter(
      (each) => each.offset >= offset && each.offset + each.size <= offset + size,
    );
    if (fragments.length === 0) throw new PlaylistError(`has segment ${i} at a range without a fragment`);
    const bytes = fragments.reduce((sum, fragment) => sum + fragment.size, 0);
    if (offset !== next || bytes !== size)
      throw new PlaylistError(`has segment ${i} at a range that is not whole fragments`);
    next = offset + size;
    return { fragments, size };
  });
  const used = segments.reduce((sum, segment) => sum + segment.fragments.length, 0);
  if (used !== file.fragments.length) throw new PlaylistError(`leaves out ${file.fragments.length - used} fragments`);
  return { track: file.track, segments };
}

async function readByFiles(files: FilesOnce, path: string, playlist: MediaPlaylist): Promise<TrackBytes> {
  const init = fileOf(path, playlist.map!.uri);
  if (init === null) throw new PlaylistError(`names ${playlist.map!.uri}, which is outside the stream`);
  const { track } = await readFragments(files.media(init));
  const segments: TrackBytes['segments'] = [];
  for (const segment of playlist.segments) {
    const name = fileOf(path, segment.uri);
    if (name === null) throw new PlaylistError(`names ${segment.uri}, which is outside the stream`);
    const { fragments, size } = await readSegment(files.media(name), track);
    if (fragments.length === 0 || fragments.reduce((sum, fragment) => sum + fragment.size, 0) !== size)
      throw new PlaylistError(`names ${segment.uri}, which is not whole fragments`);
    segments.push({ fragments, size });
  }
  return { track, segments };
}

function checkTags(playlist: MediaPlaylist): void {
  if (playlist.segments.length === 0) throw new PlaylistError('names no segment');
  if (playlist.map === null) throw new PlaylistError('has no EXT-X-MAP');
  if (!playlist.vod || !playlist.ended) throw new PlaylistError('is not a finished VOD playlist');
  if (playlist.version < 6) throw new PlaylistError(`has version ${playlist.version}; EXT-X-MAP needs 6`);
  const longest = Math.max(...playlist.segments.map((segment) => Math.round(segment.seconds)));
  if (longest > playlist.targetSeconds) throw new PlaylistError('has a segment longer than its target duration');
  if (playlist.targetSeconds > Math.max(TARGET_SECONDS, longest))
    throw new PlaylistError(
      `has a target duration of ${playlist.targetSeconds} s, and no segment longer than ${longest}`,
    );
}

function checkSegments(playlist: MediaPlaylist, bytes: TrackBytes, say: (text: string) => void): void {
  let expected = 0;
  for (const [i, { fragments }] of bytes.segments.entries()) {
    const ticks = fragments.reduce((sum, fragment) => sum + fragment.duration, 0);
    const declared = playlist.segments[i]!.seconds;
    const real = ticks / bytes.track.timescale;
    const isLastFrame = playlist.iframesOnly && i === bytes.segments.length - 1;
    if (Math.abs(real - declared) > 0.002 && !(isLastFrame && declared < real))
      say(`segment ${i} lasts ${real.toFixed(3)} s and is declared with ${declared} s`);
    if (fragments.some(({ sampleBytes, dataBytes }) => sampleBytes !== null && sampleBytes !== dataBytes))
      say(`segment ${i} has other data than its header describes`);
    if (!fragments[0]!.startsWithKey) say(`segment ${i} does not start with a keyframe`);
    if (fragments[0]!.start !== expected) say(`segment ${i} starts at another time than the one before it ends`);
    if (playlist.iframesOnly && (fragments.length !== 1 || fragments[0]!.sampleCount !== 1))
      say(`segment ${i} is not one frame`);
    expected += ticks;
  }
}

function measure(playlist: MediaPlaylist, bytes: TrackBytes): MeasuredTrack {
  const sized = bytes.segments.map(({ size, fragments }) => ({
    size,
    seconds: fragments.reduce((sum, fragment) => sum + fragment.duration, 0) / bytes.track.timescale,
  }));
  const seconds = sized.reduce((sum, segment) => sum + segment.seconds, 0);
  const frames = bytes.segments.flatMap(({ fragments }) => fragments.map((fragment) => fragment.sampleCount));
  const starts = bytes.segments.map(({ fragments }) => fragments[0]!.start / bytes.track.timescale);
  const declared = playlist.segments.map((segment, i) => ({ size: sized[i]!.size, seconds: segment.seconds }));
  const rates = bitRates(playlist.iframesOnly ? declared : sized);
  return {
    track: bytes.track,
    rates,
    seconds,
    declaredSeconds: declared.reduce((sum, segment) => sum + segment.seconds, 0),
    iframesOnly: playlist.iframesOnly,
    fps: frames.reduce((sum, count) => sum + count, 0) / seconds,
    starts,
  };
}

/** Checks a media playlist and the media behind it; null where it cannot be read at all. */
export async function verifyTrack(files: FilesOnce, path: string, findings: Findings): Promise<MeasuredTrack | null> {
  const say = (text: string) => findings.fault(`${path}: ${text}`);
  try {
    const playlist = parseMediaPlaylist(files.text(path));
    checkTags(playlist);
    const read = playlist.map!.range === null ? readByFiles : readByRanges;
    const bytes = await read(files, path, playlist);
    checkSegments(playlist, bytes, say);
    return measure(playlist, bytes);
  } catch (error) {
    if (error instanceof PlaylistError || error instanceof MediaFormatError) say(error.message);
    else if (codeOf(error) === 'ENOENT') say('it, or a file that it names, does not exist');
    else throw error;
    return null;
  }
}
