// Captions and chapters that the manifest names as files of their own. They are read and checked before anything is encoded.
import { hash } from 'node:crypto';
import { CatalogueError } from './catalogue-error.ts';
import type { CaptionEntry, NamedFile, StreamEntry } from './manifest.ts';
import { missingSource, openToRead, stampOpen, stampSource } from './media/source-file.ts';
import { decodeText, parseChapters, parseCues, TimedTextError } from './media/timed-text.ts';
import type { WrittenCaption } from './media/tracks.ts';

export interface SideFiles {
  captions: WrittenCaption[];
  chapters: string | null;
}

const MOST_BYTES = 16 * 1024 * 1024;

async function readText(what: string, file: NamedFile, parse: (text: string) => unknown): Promise<string> {
  const found = stampSource(file);
  if (found === null) throw new CatalogueError(missingSource(file).replace('its source', `its ${what}`));
  const handle = await openToRead(file);
  try {
    await stampOpen(file, handle);
    const { size } = await handle.stat();
    if (size > MOST_BYTES) throw new CatalogueError(`its ${what} ${file.name} has more than 16 MiB`);
    const text = decodeText(await handle.readFile());
    parse(text);
    return text;
  } catch (error) {
    if (error instanceof TimedTextError) throw new CatalogueError(`its ${what} ${file.name} ${error.message}`);
    throw error;
  } finally {
    await handle.close();
  }
}

async function readCaption({ source, ...about }: CaptionEntry): Promise<WrittenCaption> {
  return { ...about, text: await readText('captions', source, parseCues) };
}

export async function readSideFiles({ captions, chapters }: StreamEntry): Promise<SideFiles> {
  return {
    captions: await Promise.all(captions.map(readCaption)),
    chapters: chapters === null ? null : await readText('chapters', chapters, parseChapters),
  };
}

export const sideFilesOf = ({ captions, chapters }: StreamEntry): string[] =>
  [...captions.map(({ source }) => source), ...(chapters === null ? [] : [chapters])].map(({ path }) => path);

/** What the manifest asks of a stream beyond its picture, in a form that can be compared; empty where it asks nothing. */
export function askedOf({ audio, loudness }: StreamEntry, { captions, chapters }: SideFiles): string {
  if (captions.length === 0 && chapters === null && audio === null && loudness === null) return '';
  const digest = (text: string) => hash('sha256', text, 'hex');
  return JSON.stringify({
    captions: captions.map(({ text, ...about }) => ({ ...about, sha256: digest(text) })),
    chapters: chapters === null ? null : digest(chapters),
    audio,
    loudness,
  });
}
