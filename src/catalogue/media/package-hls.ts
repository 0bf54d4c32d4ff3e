// From encoded tracks to an HLS presentation: playlists from the real sizes of the fragments and, where asked for, the
// tracks cut into one file for each segment.
import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { audioGroups, audioName, IFRAME_NAME, videoName } from './encode-args.ts';
import { type FragmentedFile, readFragments } from './fragments.ts';
import {
  type AudioGroup,
  audioSegments,
  bitRates,
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

interface Sound {
  language: string | null;
}

const framesOf = (file: FragmentedFile) => file.fragments.reduce((sum, fragment) => sum + fragment.sampleCount, 0);

export async function packageHls(folder: string, rungs: Rung[], sound: Sound | null, layout: HlsLayout): Promise<void> {
  const packager = { folder, layout };
  const videos = await Promise.all(
    rungs.map(async (rung) => {
      const name = videoName(rung.rendition.label);
      const file = await readFragments(join(folder, name));
      return { rung, name, file, segments: videoSegments(file) };
    }),
  );
  const top = videos.at(-1)!;
  const groups: (AudioGroup & { codec: string; rates: ReturnType<typeof bitRates> })[] = [];
  for (const kbps of sound === null ? [] : audioGroups(rungs)) {
    const file = await readFragments(join(folder, audioName(kbps)));
    const segments = audioSegments(file, top.segments);
    const uri = await writeTrack(packager, audioName(kbps), file, segments);
    const { codec, channels } = file.track;
    const { language = null } = sound ?? {};
    groups.push({ id: `audio-${kbps}`, uri, channels, language, codec, rates: bitRates(segments) });
  }
  const variants: Variant[] = [];
  for (const { rung, name, file, segments } of videos) {
    const group = groups.find((each) => each.id === `audio-${rung.rendition.audio_kbps}`);
    const video = bitRates(segments);
    variants.push({
      uri: await writeTrack(packager, name, file, segments),
      rates: {
        peak: video.peak + (group?.rates.peak ?? 0),
        average: video.average + (group?.rates.average ?? 0),
      },
      codecs: [file.track.codec, ...(group ? [group.codec] : [])],
      width: file.track.width,
      height: file.track.height,
      fps: framesOf(file) / totalSeconds(segments),
      audioGroup: group?.id ?? null,
    });
  }
  const seconds = totalSeconds(top.segments);
  const iframes = await readFragments(join(folder, IFRAME_NAME));
  const frames = iframeSegments(iframes, seconds);
  const { codec, width, height } = iframes.track;
  const uri = await writeTrack(packager, IFRAME_NAME, iframes, frames, true);
  const multivariant = multivariantPlaylist(variants, groups, { uri, rates: bitRates(frames), codec, width, height });
  await writeFile(join(folder, MULTIVARIANT_NAME), multivariant);
}
