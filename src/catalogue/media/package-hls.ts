// From encoded tracks to an HLS presentation: playlists from the real sizes of the fragments and, where asked for, the
// tracks cut into one file for each segment.
import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { audioGroups, audioName, IFRAME_NAME, type Sound, videoName } from './encode-args.ts';
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
  const audio: (AudioRendition & { codec: string; rates: BitRates })[] = [];
  for (const kbps of audioGroups(rungs)) {
    for (const [place, { language, name, characteristics }] of sounds.entries()) {
      const file = await readFragments(join(folder, audioName(kbps, place)));
      const segments = audioSegments(file, top.segments);
      const uri = await writeTrack(packager, audioName(kbps, place), file, segments);
      const { codec, channels } = file.track;
      const about = { language, name, characteristics, isDefault: place === 0 };
      audio.push({ group: `audio-${kbps}`, uri, channels, ...about, codec, rates: bitRates(segments) });
    }
  }
  const variants: Variant[] = [];
  for (const { rung, name, file, segments } of videos) {
    const group = audio.filter((each) => each.group === `audio-${rung.rendition.audio_kbps}`);
    const video = bitRates(segments);
    // Whichever language a viewer chooses, the variant takes no more than it says.
    const sound = largest(group.map(({ rates }) => rates));
    variants.push({
      uri: await writeTrack(packager, name, file, segments),
      rates: {
        peak: video.peak + sound.peak,
        average: video.average + sound.average,
      },
      codecs: [file.track.codec, ...group.slice(0, 1).map(({ codec }) => codec)],
      width: file.track.width,
      height: file.track.height,
      fps: framesOf(file) / totalSeconds(segments),
      audioGroup: group[0]?.group ?? null,
    });
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
