// What ffmpeg really wrote, read back from the files: ffmpeg can end with code 0 although a file is not whole.
import { join } from 'node:path';
import { MediaFormatError } from './boxes.ts';
import { audioGroups, audioName, type EncodePlan, progressiveName, videoName } from './encode-args.ts';
import { readFragments, readMovie } from './fragments.ts';
import { rateOf } from './timing.ts';

export interface Measured {
  seconds: number;
  fps: number;
}

async function measureTrack(folder: string, name: string): Promise<Measured> {
  const { fragments, track } = await readFragments(join(folder, name));
  const seconds = fragments.reduce((sum, fragment) => sum + fragment.duration, 0) / track.timescale;
  const frames = fragments.reduce((sum, fragment) => sum + fragment.sampleCount, 0);
  if (frames === 0) throw new MediaFormatError(`${name} has no frame`);
  return { seconds, fps: frames / seconds };
}

async function measureMovie(folder: string, name: string, hasAudio: boolean): Promise<Measured & { soundS: number }> {
  const { tracks, faststart } = await readMovie(join(folder, name));
  const lengthOf = (kind: string) => {
    const track = tracks.find((each) => each.kind === kind);
    return track === undefined ? 0 : track.samples.duration / track.timescale;
  };
  const seconds = lengthOf('video');
  if (!faststart || seconds === 0 || (hasAudio && lengthOf('audio') === 0))
    throw new MediaFormatError(`${name} lacks a track`);
  const frames = tracks.find((each) => each.kind === 'video')!.samples.count;
  return { seconds, fps: frames / seconds, soundS: lengthOf('audio') };
}

/** Length and rate of the largest rung. */
export function measurePicture(folder: string, plan: EncodePlan): Promise<Measured> {
  const top = plan.hls.at(-1);
  if (top !== undefined) return measureTrack(folder, videoName(top.rendition.label));
  return measureMovie(folder, progressiveName(plan.progressive.at(-1)!.rendition.label), plan.facts.audio !== null);
}

/** A frame of sound at each end of a track: what the encoder adds before, and fills up after. */
const SOUND_SLACK_S = (2 * 1024) / 48_000;

/** Throws MediaFormatError where a file lacks part of the picture or of the sound. */
export async function checkOutputs(folder: string, plan: EncodePlan, picture: Measured): Promise<void> {
  const slack = 2 / rateOf(plan.facts.rate) + SOUND_SLACK_S;
  const check = (name: string, seconds: number) => {
    if (Math.abs(seconds - picture.seconds) <= slack) return;
    throw new MediaFormatError(`${name} lasts ${seconds.toFixed(3)} s, the picture ${picture.seconds.toFixed(3)} s`);
  };
  const hasAudio = plan.facts.audio !== null;
  for (const { rendition } of plan.progressive) {
    const name = progressiveName(rendition.label);
    const { seconds, soundS } = await measureMovie(folder, name, hasAudio);
    check(name, seconds);
    if (hasAudio) check(`the sound of ${name}`, soundS);
  }
  const tracks = plan.hls.map((rung) => videoName(rung.rendition.label));
  for (const kbps of hasAudio ? audioGroups(plan.hls) : []) tracks.push(audioName(kbps));
  for (const name of tracks) check(name, (await measureTrack(folder, name)).seconds);
}
