// A stream's HLS presentation: the multivariant playlist against the tracks it names.
import type { Stream } from '../document.ts';
import { codeOf } from '../fault.ts';
import {
  type Attributes,
  type MultivariantPlaylist,
  PlaylistError,
  parseMultivariantPlaylist,
} from '../media/read-playlist.ts';
import type { FilesOnce } from './files-once.ts';
import type { Findings } from './finding.ts';
import { fileOf, type MeasuredTrack, verifyTrack } from './verify-track.ts';

const within = (declared: number, real: number, share: number) => Math.abs(declared - real) <= real * share;

function checkRates(say: (text: string) => void, attributes: Attributes, tracks: MeasuredTrack[]): void {
  const peak = tracks.reduce((sum, { rates }) => sum + rates.peak, 0);
  const average = tracks.reduce((sum, { rates }) => sum + rates.average, 0);
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
  audio: MeasuredTrack | null,
): void {
  checkRates(say, attributes, audio === null ? [video] : [video, audio]);
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
  checkRates(say, attributes, [frames]);
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

async function verifyTracks(
  { files, findings, path }: Place,
  playlist: MultivariantPlaylist,
  stream: Stream,
): Promise<void> {
  const say = (text: string) => findings.fault(`${path}: ${text}`);
  const trackAt = (uri: string | undefined) => {
    const file = fileOf(path, uri ?? '');
    if (file !== null) return verifyTrack(files, file, findings);
    say(`names ${uri}, which is outside the stream`);
    return null;
  };
  const groups = new Map<string, MeasuredTrack | null>();
  for (const media of playlist.media) groups.set(media.get('GROUP-ID') ?? '', await trackAt(media.get('URI')));
  const videos: MeasuredTrack[] = [];
  for (const { attributes, uri } of playlist.variants) {
    const group = attributes.get('AUDIO');
    if (group === undefined && groups.size > 0) say(`variant ${uri}: has no sound, and others have`);
    if (group !== undefined && !groups.has(group)) say(`has a variant with the unknown audio group ${group}`);
    const video = await trackAt(uri);
    if (video === null) continue;
    videos.push(video);
    checkVariant((text) => say(`variant ${uri}: ${text}`), attributes, video, groups.get(group ?? '') ?? null);
  }
  for (const media of playlist.media) {
    const audio = groups.get(media.get('GROUP-ID') ?? '');
    if (audio) checkAudio((text) => say(`sound ${media.get('URI')}: ${text}`), media, audio, videos);
  }
  for (const attributes of playlist.iframes) {
    const track = await trackAt(attributes.get('URI'));
    if (track !== null) checkIframes((text) => say(`I-frames: ${text}`), attributes, track, videos);
  }
  if (videos.length > 0) checkStream(findings, path, stream, videos);
}
