// Which tracks of a source its stream has: the sound in every language, and captions, from the source and from files beside
// it. Each has a name that viewers choose it by.
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CatalogueError } from '../catalogue-error.ts';
import { languageTag, type SourceTrack } from './describe-input.ts';
import { type Sound, toLayout } from './encode-args.ts';
import { type Ffmpeg, runFfmpeg, sourceInput } from './ffmpeg.ts';
import type { CaptionTrack } from './package-hls.ts';
import { AUXILIARY } from './playlists.ts';
import type { ProbedSource } from './probe-source.ts';
import type { SourceFile } from './source-file.ts';
import { decodeText, parseCues, TimedTextError } from './timed-text.ts';

/** Captions of a file that the manifest names, read already. */
export interface WrittenCaption {
  text: string;
  language: string;
  name: string | null;
  isDefault: boolean;
  isForced: boolean;
}

/** What a language is called by those who speak it: Deutsch, español. */
export function languageName(tag: string): string {
  const name = new Intl.DisplayNames([tag, 'en'], { type: 'language', fallback: 'code' }).of(tag) ?? tag;
  return name.charAt(0).toLocaleUpperCase(tag) + name.slice(1);
}

/** Names in one list have to differ, and stand between quotation marks. */
function unlikeOthers<T extends { name: string }>(items: T[]): T[] {
  const seen = new Map<string, number>();
  return items.map((item) => {
    const name = item.name.replace(/["\p{Cc}]/gu, ' ').trim() || 'Track';
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return { ...item, name: count === 1 ? name : `${name} ${count}` };
  });
}

const describes = (track: SourceTrack) =>
  track.roles.some((role) => ['visual impaired', 'descriptions'].includes(role));

/** What else a sound is than what is said in the film, for people and for players. */
function purposeOf(track: SourceTrack): { kind: string | null; characteristics: string[] } {
  if (describes(track)) return { kind: 'Audio description', characteristics: ['public.accessibility.describes-video'] };
  if (track.roles.includes('comment')) return { kind: 'Commentary', characteristics: [AUXILIARY] };
  return { kind: null, characteristics: [] };
}

function soundOf(track: SourceTrack): Sound {
  const language = languageTag(track.language ?? undefined);
  const { kind, characteristics } = purposeOf(track);
  const spoken = [language === null ? null : languageName(language), kind].filter((part) => part !== null).join(', ');
  return {
    index: track.index,
    language,
    name: track.title ?? (spoken || 'Main'),
    channels: track.channels,
    characteristics,
    loudness: null,
    surroundLoudness: null,
  };
}

interface WantedSounds {
  /** Languages, the main one first; null: every track. */
  languages: string[] | null;
  /** Of the main track, instead of its own. */
  language: string | null;
  /** Files have one track; only HLS offers a choice. */
  all: boolean;
}

/** The main sound first: the default track, or the first that is asked for. */
export function chooseSounds(source: SourceFile, { tracks, audio }: ProbedSource, wanted: WantedSounds): Sound[] {
  const found = tracks.filter((track) => track.kind === 'audio');
  const sounds = found.map(soundOf).sort((a, b) => Number(b.index === audio?.index) - Number(a.index === audio?.index));
  const chosen = (wanted.languages ?? []).flatMap((language) => {
    const same = sounds.filter((sound) => sound.language === language);
    if (same.length > 0) return same;
    const has = [...new Set(sounds.map((sound) => sound.language ?? 'one without a language'))].join(', ');
    throw new CatalogueError(`${source.name} has no sound in ${language}; it has ${has || 'no sound at all'}`);
  });
  const [main, ...others] = wanted.languages === null ? sounds : chosen;
  if (main === undefined) return [];
  const language = wanted.language ?? main.language;
  if (others.length === 0 || !wanted.all) return [{ ...main, language, name: 'Main' }];
  return unlikeOthers([{ ...main, language }, ...others]);
}

/** Subtitles that are texts; others are pictures. */
const textCodecs = ['subrip', 'srt', 'ass', 'ssa', 'mov_text', 'webvtt', 'text'];
const forTheDeaf = ['public.accessibility.transcribes-spoken-dialog', 'public.accessibility.describes-music-and-sound'];

const textName = (index: number) => `text-${index}.vtt`;

interface FoundCaptions {
  captions: CaptionTrack[];
  /** Tracks of the source that they come from. */
  carried: number[];
}

/** Captions of the manifest first, then the text tracks of the source; what cannot be read is told and left out. */
export async function gatherCaptions(
  ffmpeg: Ffmpeg,
  source: SourceFile,
  { tracks }: ProbedSource,
  written: WrittenCaption[],
  { folder, signal }: { folder: string; signal?: AbortSignal | undefined },
): Promise<FoundCaptions> {
  const captions = written.map(({ text, language, name, isDefault, isForced }): CaptionTrack => {
    const shown = name ?? languageName(language);
    return { cues: parseCues(text), language, name: shown, isDefault, isForced, characteristics: [] };
  });
  const inside = tracks.filter(({ kind, codec }) => kind === 'subtitle' && textCodecs.includes(codec));
  const carried: number[] = [];
  if (inside.length > 0) {
    const outputs = inside.flatMap(({ index }) => [
      '-map',
      `0:${index}`,
      '-c:s',
      'webvtt',
      '-f',
      'webvtt',
      textName(index),
    ]);
    const args = ['-y', '-v', 'error', ...sourceInput(source), ...outputs];
    const isRead = await runFfmpeg(ffmpeg, args, { cwd: folder, source, signal }).then(
      () => true,
      (error) => {
        if (!(error instanceof CatalogueError)) throw error;
        return false;
      },
    );
    for (const track of inside) {
      const cues = isRead ? await cuesIn(join(folder, textName(track.index))) : null;
      await rm(join(folder, textName(track.index)), { force: true });
      if (cues === null) continue;
      carried.push(track.index);
      const language = languageTag(track.language ?? undefined) ?? 'und';
      const name = track.title ?? (language === 'und' ? null : languageName(language)) ?? 'Captions';
      const isForced = track.roles.includes('forced');
      const characteristics = track.roles.includes('hearing impaired') ? forTheDeaf : [];
      captions.push({ cues, language, name, isDefault: false, isForced, characteristics });
    }
  }
  return { captions: unlikeOthers(captions), carried };
}

async function cuesIn(path: string): Promise<CaptionTrack['cues'] | null> {
  try {
    return parseCues(decodeText(await readFile(path)));
  } catch (error) {
    if (error instanceof TimedTextError) return null;
    throw error;
  }
}

/** True peaks may rise when sound is coded; half a decibel is kept for that. */
const TRUE_PEAK_DB = -1.5;
const LOUDNESS_RANGE = 11;

/** Measures a sound, and gives the filter that brings it to `lufs` with one gain, where its peaks allow that. */
export async function loudnessFilter(
  ffmpeg: Ffmpeg,
  source: SourceFile,
  { index }: Sound,
  { lufs, layout }: { lufs: number; layout: string },
  signal?: AbortSignal,
): Promise<string | null> {
  const target = `loudnorm=I=${lufs}:TP=${TRUE_PEAK_DB}:LRA=${LOUDNESS_RANGE}`;
  const filters = `${toLayout(layout)},${target}:print_format=json`;
  const args = [...sourceInput(source), '-map', `0:${index}`, '-af', filters, '-f', 'null', '-'];
  const output = await runFfmpeg(ffmpeg, args, { source, signal });
  const json = /\{[^{}]*"input_i"[^{}]*\}/.exec(output)?.[0];
  const found = JSON.parse(json ?? '{}') as Record<string, string>;
  const [i, peak, range, threshold, offset] = ['input_i', 'input_tp', 'input_lra', 'input_thresh', 'target_offset'].map(
    (name) => Number(found[name]),
  ) as [number, number, number, number, number];
  // Silence has no loudness, and nothing makes it louder.
  if (![i, peak, range, threshold, offset].every(Number.isFinite)) return null;
  const measured = `measured_I=${i}:measured_TP=${peak}:measured_LRA=${range}:measured_thresh=${threshold}`;
  return `${target}:${measured}:offset=${offset}:linear=true`;
}
