// A stream's HLS presentation: each media playlist against the bytes of its fragments, and the multivariant playlist
// against the tracks it names.
import { dirname, join, normalize } from 'node:path';
import { codeOf } from '../catalogue-error.ts';
import type { Stream } from '../document.ts';
import { MediaFormatError } from '../media/boxes.ts';
import { type Fragment, readFragments, readSegment, type Track } from '../media/fragments.ts';
import { type BitRates, bitRates, TARGET_SECONDS } from '../media/playlists.ts';
import {
  type Attributes,
  type MediaPlaylist,
  type MultivariantPlaylist,
  PlaylistError,
  parseMediaPlaylist,
  parseMultivariantPlaylist,
} from '../media/read-playlist.ts';
import type { FilesOnce, Findings } from './verify-files.ts';

/** A track as its bytes show it, whatever its playlist says. */
interface MeasuredTrack {
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
function fileOf(playlistPath: string, uri: string): string | null {
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
async function verifyTrack(files: FilesOnce, path: string, findings: Findings): Promise<MeasuredTrack | null> {
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

const within = (declared: number, real: number, share: number) => Math.abs(declared - real) <= real * share;

/** Of the sound in several languages a player takes one: the largest counts. */
function checkRates(
  say: (text: string) => void,
  attributes: Attributes,
  { rates }: MeasuredTrack,
  sounds: MeasuredTrack[] = [],
): void {
  const peak = rates.peak + Math.max(0, ...sounds.map((sound) => sound.rates.peak));
  const average = rates.average + Math.max(0, ...sounds.map((sound) => sound.rates.average));
  for (const [name, real] of [
    ['BANDWIDTH', peak],
    ['AVERAGE-BANDWIDTH', average],
  ] as const) {
    const declared = Number(attributes.get(name));
    if (!within(declared, real, 0.1)) say(`${name} is ${attributes.get(name)}, measured ${Math.round(real)}`);
  }
}

function checkVariant(
  say: (text: string) => void,
  attributes: Attributes,
  video: MeasuredTrack,
  group: MeasuredTrack[],
): void {
  const audio = group[0] ?? null;
  checkRates(say, attributes, video, group);
  const { width, height, codec } = video.track;
  if (attributes.get('RESOLUTION') !== `${width}x${height}`) say(`RESOLUTION is not ${width}x${height}`);
  const codecs = [codec, ...(audio === null ? [] : [audio.track.codec])].join(',');
  if (attributes.get('CODECS') !== codecs) say(`CODECS is not ${codecs}`);
  if (!within(Number(attributes.get('FRAME-RATE')), video.fps, 0.001)) say(`FRAME-RATE is not ${video.fps.toFixed(3)}`);
  if (!/^avc1\.64/.test(codec)) say(`the video is ${codec}, not H.264 High`);
}

/** At five frames a second, a frame of the picture and two of the sound: what encoders may add to a length. */
export const MOST_APART_SECONDS = 0.25;

function checkAudio(
  say: (text: string) => void,
  media: Attributes,
  audio: MeasuredTrack,
  videos: MeasuredTrack[],
): void {
  const { kind, channels } = audio.track;
  if (kind !== 'audio') say('is not sound');
  if (media.get('CHANNELS')?.split('/')[0] !== String(channels)) say(`CHANNELS is not ${channels}`);
  for (const { seconds } of videos.slice(0, 1)) {
    if (Math.abs(seconds - audio.seconds) > MOST_APART_SECONDS)
      say(`lasts ${audio.seconds.toFixed(3)} s, the picture ${seconds.toFixed(3)} s`);
  }
}

/** I-frames are for seeking: one at every step, all of the same length, from the first picture to the last. */
function checkIframes(
  say: (text: string) => void,
  attributes: Attributes,
  frames: MeasuredTrack,
  videos: MeasuredTrack[],
): void {
  checkRates(say, attributes, frames);
  const { width, height, codec } = frames.track;
  if (!frames.iframesOnly) say('lacks EXT-X-I-FRAMES-ONLY');
  if (attributes.get('CODECS') !== codec) say(`CODECS is not ${codec}`);
  if (attributes.get('RESOLUTION') !== `${width}x${height}`) say(`RESOLUTION is not ${width}x${height}`);
  const steps = frames.starts.slice(1).map((start, i) => start - frames.starts[i]!);
  if (steps.some((step) => Math.abs(step - steps[0]!) > 0.002)) say('the frames are not evenly spaced');
  for (const { seconds } of videos.slice(0, 1)) {
    if (Math.abs(frames.declaredSeconds - seconds) > 0.05)
      say(`they cover ${frames.declaredSeconds.toFixed(3)} s of ${seconds.toFixed(3)} s`);
  }
}

function checkAlignment(say: (text: string) => void, tracks: MeasuredTrack[]): void {
  const [first, ...others] = tracks;
  for (const other of others) {
    const same = other.starts.length === first!.starts.length;
    if (!same || other.starts.some((start, i) => Math.abs(start - first!.starts[i]!) > 0.001))
      say('the segments of its variants are not aligned');
  }
}

function checkStream(findings: Findings, path: string, stream: Stream, videos: MeasuredTrack[]): void {
  const say = (text: string) => findings.fault(`${path}: ${text}`);
  checkAlignment(say, videos);
  const [fastest, longest] = [
    Math.max(...videos.map(({ fps }) => fps)),
    Math.max(...videos.map(({ seconds }) => seconds)),
  ];
  if (!within(stream.fps, fastest, 0.001))
    findings.fault(`stream ${stream.id}: fps is ${stream.fps}, measured ${fastest}`);
  if (Math.abs(stream.duration_s - longest) > 0.05)
    findings.fault(`stream ${stream.id}: duration_s is ${stream.duration_s}, measured ${longest.toFixed(3)}`);
  for (const { rates, track } of videos) {
    if (rates.peak > 2 * rates.average)
      findings.note(`${path}: the peak of its ${track.width}x${track.height} variant is more than twice the average`);
  }
}

/** Checks a stream's multivariant playlist and every track it names. */
export async function verifyHls(files: FilesOnce, stream: Stream, findings: Findings): Promise<void> {
  const path = stream.hls!.slice(1);
  const say = (text: string) => findings.fault(`${path}: ${text}`);
  try {
    const playlist = parseMultivariantPlaylist(files.text(path));
    if (!playlist.independent) say('lacks EXT-X-INDEPENDENT-SEGMENTS');
    if (playlist.variants.length === 0) say('names no variant');
    if (playlist.iframes.length === 0) say('names no I-frame playlist');
    await verifyTracks({ files, findings, path }, playlist, stream);
  } catch (error) {
    if (error instanceof PlaylistError) say(error.message);
    else if (codeOf(error) === 'ENOENT') say('does not exist');
    else throw error;
  }
}

interface Place {
  files: FilesOnce;
  findings: Findings;
  /** Of the multivariant playlist. */
  path: string;
}

/** Captions have no fragments: each segment is a text with a clock that begins with the picture. */
function verifyCaptions({ files, findings, path }: Place, media: Attributes, videos: MeasuredTrack[]): void {
  const uri = media.get('URI') ?? '';
  const say = (text: string) => findings.fault(`${path}: captions ${uri}: ${text}`);
  const file = fileOf(path, uri);
  if (media.get('TYPE') !== 'SUBTITLES' || file === null) {
    say('are not a track of this stream');
    return;
  }
  if (media.get('DEFAULT') === 'YES' && media.get('AUTOSELECT') !== 'YES') say('DEFAULT needs AUTOSELECT');
  try {
    const playlist = parseMediaPlaylist(files.text(file));
    if (!playlist.vod || !playlist.ended) say('are not a finished VOD playlist');
    for (const segment of playlist.segments) {
      const name = fileOf(file, segment.uri);
      if (name === null || !files.text(name).startsWith('WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n'))
        say(`segment ${segment.uri} is not WebVTT with the clock of the picture`);
      if (Math.round(segment.seconds) > playlist.targetSeconds) say('have a segment longer than the target duration');
    }
    const seconds = playlist.segments.reduce((sum, segment) => sum + segment.seconds, 0);
    for (const video of videos.slice(0, 1))
      if (Math.abs(seconds - video.seconds) > MOST_APART_SECONDS)
        say(`last ${seconds.toFixed(3)} s, the picture ${video.seconds.toFixed(3)} s`);
  } catch (error) {
    if (error instanceof PlaylistError) say(error.message);
    else if (codeOf(error) === 'ENOENT') say('they, or a file that they name, do not exist');
    else throw error;
  }
}

async function verifyTracks(
  { files, findings, path }: Place,
  playlist: MultivariantPlaylist,
  stream: Stream,
): Promise<void> {
  const say = (text: string) => findings.fault(`${path}: ${text}`);
  // The same picture is in several variants, where there is sound in more than two channels.
  const seen = new Map<string, Promise<MeasuredTrack | null>>();
  const trackAt = (uri: string | undefined) => {
    const file = fileOf(path, uri ?? '');
    if (file === null) {
      say(`names ${uri}, which is outside the stream`);
      return null;
    }
    if (!seen.has(file)) seen.set(file, verifyTrack(files, file, findings));
    return seen.get(file)!;
  };
  const isSound = (media: Attributes) => media.get('TYPE') === 'AUDIO';
  const sounds: { media: Attributes; audio: MeasuredTrack }[] = [];
  const groups = new Map<string, MeasuredTrack[]>();
  for (const media of playlist.media.filter(isSound)) {
    const audio = await trackAt(media.get('URI'));
    const group = media.get('GROUP-ID') ?? '';
    groups.set(group, [...(groups.get(group) ?? []), ...(audio === null ? [] : [audio])]);
    if (audio !== null) sounds.push({ media, audio });
  }
  const videos: MeasuredTrack[] = [];
  for (const { attributes, uri } of playlist.variants) {
    const group = attributes.get('AUDIO');
    if (group === undefined && groups.size > 0) say(`variant ${uri}: has no sound, and others have`);
    if (group !== undefined && !groups.has(group)) say(`has a variant with the unknown audio group ${group}`);
    const video = await trackAt(uri);
    if (video === null) continue;
    videos.push(video);
    checkVariant((text) => say(`variant ${uri}: ${text}`), attributes, video, groups.get(group ?? '') ?? []);
  }
  for (const { media, audio } of sounds)
    checkAudio((text) => say(`sound ${media.get('URI')}: ${text}`), media, audio, videos);
  const captions = playlist.media.filter((media) => !isSound(media));
  for (const { attributes, uri } of playlist.variants) {
    const group = attributes.get('SUBTITLES');
    if (captions.length > 0 && !captions.some((media) => media.get('GROUP-ID') === group))
      say(`variant ${uri}: has no captions, and there are some`);
  }
  for (const media of captions) verifyCaptions({ files, findings, path }, media, videos);
  for (const attributes of playlist.iframes) {
    const track = await trackAt(attributes.get('URI'));
    if (track !== null) checkIframes((text) => say(`I-frames: ${text}`), attributes, track, videos);
  }
  if (videos.length > 0) checkStream(findings, path, stream, videos);
}
