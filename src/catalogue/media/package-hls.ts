// From encoded tracks to an HLS presentation: playlists from the real sizes of the fragments and, where asked for, the
// tracks cut into one file for each segment.
import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  audioGroups,
  audioName,
  hasSurround,
  IFRAME_NAME,
  type Sound,
  surroundName,
  videoName,
} from './encode-args.ts';
import { type FragmentedFile, readFragments } from './fragments.ts';
import {
  type AudioRendition,
  audioSegments,
  type BitRates,
  bitRates,
  type CaptionRendition,
  captionPlaylist,
  iframeSegments,
  mediaPlaylist,
  multivariantPlaylist,
  type Segment,
  type TrackLayout,
  totalSeconds,
  type Variant,
  videoSegments,
} from './playlists.ts';
import type { Rung } from './rungs.ts';
import { type Cue, segmentVtt } from './timed-text.ts';

export type HlsLayout = 'ranges' | 'segments';
export const MULTIVARIANT_NAME = 'hls/main.m3u8';

/** Cuts one track's file into init and segment files, and removes it. */
async function splitTrack(path: string, folder: string, file: FragmentedFile, segments: Segment[]): Promise<void> {
  await mkdir(folder, { recursive: true });
  const from = await open(path, 'r');
  try {
    const copy = async (name: string, offset: number, size: number) => {
      const bytes = Buffer.alloc(size);
      await from.read(bytes, 0, size, offset);
      await writeFile(join(folder, name), bytes);
    };
    await copy('init.mp4', 0, file.initSize);
    for (const [i, segment] of segments.entries()) await copy(segmentFile(i), segment.offset, segment.size);
  } finally {
    await from.close();
  }
  await rm(path);
}

const segmentFile = (index: number) => `${String(index + 1).padStart(5, '0')}.m4s`;

interface Packager {
  folder: string;
  layout: HlsLayout;
}

/** Writes the media playlist of a track, and gives its address relative to the multivariant playlist. */
async function writeTrack(
  { folder, layout }: Packager,
  name: string,
  file: FragmentedFile,
  segments: Segment[],
  iframesOnly = false,
): Promise<string> {
  const stem = name.replace(/^hls\//, '').replace(/\.mp4$/, '');
  let place: TrackLayout = { kind: 'ranges', file: `${stem}.mp4`, initSize: file.initSize };
  // I-frames are addressed by range in either layout: a file for each frame would help no cache.
  if (layout === 'segments' && !iframesOnly) {
    await splitTrack(join(folder, name), join(folder, 'hls', stem), file, segments);
    place = { kind: 'segments', init: `${stem}/init.mp4`, segmentFile: (i) => `${stem}/${segmentFile(i)}` };
  }
  const uri = `${stem}.m3u8`;
  await writeFile(join(folder, 'hls', uri), mediaPlaylist(segments, place, iframesOnly));
  return uri;
}

/** A track of captions: how viewers choose it, and what it says. */
export interface CaptionTrack extends Omit<CaptionRendition, 'uri'> {
  cues: Cue[];
}

/** Writes a track of captions, cut where the picture is cut. */
async function writeCaptions(folder: string, captions: CaptionTrack[], video: Segment[]): Promise<CaptionRendition[]> {
  const lengths = video.map((segment) => segment.seconds);
  const written: CaptionRendition[] = [];
  for (const [i, { cues, ...about }] of captions.entries()) {
    const stem = `c-${i + 1}`;
    const file = (index: number) => `${stem}/${String(index + 1).padStart(5, '0')}.vtt`;
    await mkdir(join(folder, 'hls', stem), { recursive: true });
    for (const [index, text] of segmentVtt(cues, lengths).entries())
      await writeFile(join(folder, 'hls', file(index)), text);
    await writeFile(join(folder, 'hls', `${stem}.m3u8`), captionPlaylist(lengths, file));
    written.push({ ...about, uri: `${stem}.m3u8` });
  }
  return written;
}

const framesOf = (file: FragmentedFile) => file.fragments.reduce((sum, fragment) => sum + fragment.sampleCount, 0);

interface Tracks {
  rungs: Rung[];
  sounds: Sound[];
  captions: CaptionTrack[];
}

const largest = (rates: BitRates[]): BitRates => ({
  peak: Math.max(0, ...rates.map(({ peak }) => peak)),
  average: Math.max(0, ...rates.map(({ average }) => average)),
});

const stereoGroup = (kbps: number) => `audio-${kbps}`;
const SURROUND_GROUP = 'audio-surround';

type WrittenSound = AudioRendition & { codec: string; rates: BitRates };

/**
 * Every sound once for each bit rate, in two channels; then those in 5.1. That group has to offer the same languages: those
 * that have no more than two channels are there as they are.
 */
async function writeSounds(
  packager: Packager,
  groups: number[],
  sounds: Sound[],
  video: Segment[],
): Promise<WrittenSound[]> {
  const write = async (group: string, name: string, place: number): Promise<WrittenSound> => {
    const file = await readFragments(join(packager.folder, name));
    const segments = audioSegments(file, video);
    const uri = await writeTrack(packager, name, file, segments);
    const { language, name: shown, characteristics } = sounds[place]!;
    const about = { language, name: shown, characteristics, isDefault: place === 0 };
    return { group, uri, channels: file.track.channels, ...about, codec: file.track.codec, rates: bitRates(segments) };
  };
  const written: WrittenSound[] = [];
  for (const kbps of groups)
    for (const place of sounds.keys()) written.push(await write(stereoGroup(kbps), audioName(kbps, place), place));
  if (!sounds.some(hasSurround)) return written;
  const best = written.slice(-sounds.length);
  for (const [place, sound] of sounds.entries())
    written.push(
      hasSurround(sound)
        ? await write(SURROUND_GROUP, surroundName(place), place)
        : { ...best[place]!, group: SURROUND_GROUP },
    );
  return written;
}

export async function packageHls(
  folder: string,
  { rungs, sounds, captions }: Tracks,
  layout: HlsLayout,
): Promise<void> {
  const packager = { folder, layout };
  const videos = await Promise.all(
    rungs.map(async (rung) => {
      const name = videoName(rung.rendition.label);
      const file = await readFragments(join(folder, name));
      return { rung, name, file, segments: videoSegments(file) };
    }),
  );
  const top = videos.at(-1)!;
  const audio = await writeSounds(packager, audioGroups(rungs), sounds, top.segments);
  const variants: Variant[] = [];
  for (const { rung, name, file, segments } of videos) {
    const video = bitRates(segments);
    const uri = await writeTrack(packager, name, file, segments);
    const fps = framesOf(file) / totalSeconds(segments);
    const { codec, width, height } = file.track;
    const shown = { uri, width, height, fps };
    const stereo = sounds.length === 0 ? null : stereoGroup(rung.rendition.audio_kbps);
    const surround = sounds.some(hasSurround) ? [SURROUND_GROUP] : [];
    for (const audioGroup of [stereo, ...surround]) {
      const group = audio.filter((each) => each.group === audioGroup);
      // Whichever language a viewer chooses, the variant takes no more than it says.
      const sound = largest(group.map(({ rates }) => rates));
      const rates = { peak: video.peak + sound.peak, average: video.average + sound.average };
      const codecs = [codec, ...group.slice(0, 1).map((each) => each.codec)];
      variants.push({ ...shown, rates, codecs, audioGroup, isSurround: audioGroup === SURROUND_GROUP });
    }
  }
  const seconds = totalSeconds(top.segments);
  const iframes = await readFragments(join(folder, IFRAME_NAME));
  const frames = iframeSegments(iframes, seconds);
  const { codec, width, height } = iframes.track;
  const uri = await writeTrack(packager, IFRAME_NAME, iframes, frames, true);
  const iframe = { uri, rates: bitRates(frames), codec, width, height };
  const texts = await writeCaptions(folder, captions, top.segments);
  const multivariant = multivariantPlaylist(variants, audio, texts, iframe);
  await writeFile(join(folder, MULTIVARIANT_NAME), multivariant);
}
