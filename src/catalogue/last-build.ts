// The files that the last build depended on, with their stamps. While all of them are as they were, the next build has
// nothing to do, and need not parse, load or compare anything to know it.
import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { installDir } from '../lib/install.ts';
import { replaceFile } from './files.ts';
import type { StreamRecord } from './ledger.ts';
import type { SitePaths } from './site-paths.ts';
import { gallerySources } from './site-texts.ts';

interface LastBuild {
  node: string;
  manifest: string;
  streams: number;
  /** By path: manifest, sources, ledger, what the release consists of, and the texts of the site with their compressed forms. */
  stamps: Record<string, string>;
  /** Names and sizes of published media in turn, by folder below the site. */
  media: Record<string, (string | number)[]>;
}

export interface FinishedBuild {
  manifestPath: string;
  sources: string[];
  records: Map<string, StreamRecord>;
  streams: number;
  /** Paths of the site's texts, compressed forms included. */
  texts: string[];
}

/** A file changed this recently could change again without its times showing it. */
const TOO_RECENT_MS = 2000;
/** Changes with every release, and what a build does may change with it. */
const release = join(installDir, 'package.json');

/** `changedMs`: when it last changed, in whatever way. */
function stampAt(path: string): { stamp: string; changedMs: number } | null {
  const facts = statSync(path, { throwIfNoEntry: false });
  if (facts === undefined) return null;
  const stamp = `${facts.size} ${facts.mtimeMs} ${facts.ctimeMs} ${facts.ino}`;
  return { stamp, changedMs: Math.max(facts.mtimeMs, facts.ctimeMs) };
}

function mediaOf(records: Map<string, StreamRecord>): LastBuild['media'] {
  const media: LastBuild['media'] = {};
  for (const record of records.values()) {
    if (record.purged) continue;
    for (const [path, { size }] of record.files) {
      const at = path.lastIndexOf('/');
      const folder = path.slice(0, at);
      media[folder] ??= [];
      media[folder].push(path.slice(at + 1), size);
    }
  }
  return media;
}

/** Remembers a build; not where a file is missing, or changed while the build was at work or just before. */
export async function rememberBuild(paths: SitePaths, build: FinishedBuild, startedMs: number): Promise<void> {
  const manifest = resolve(build.manifestPath);
  const texts = build.texts.map((path) => join(paths.site, path));
  const inputs = [manifest, ...build.sources, paths.ledger, ...texts, ...gallerySources(), release];
  const stamps: Record<string, string> = {};
  for (const path of inputs) {
    const seen = stampAt(path);
    if (seen === null || seen.changedMs > startedMs - TOO_RECENT_MS) return;
    stamps[path] = seen.stamp;
  }
  const last: LastBuild = {
    node: process.version,
    manifest,
    streams: build.streams,
    stamps,
    media: mediaOf(build.records),
  };
  await replaceFile(paths.lastBuild, JSON.stringify(last));
}

/** How many streams there are, if everything is as the last build left it; null where something has changed. */
export function streamsIfUnchanged(paths: SitePaths, manifestPath: string): number | null {
  let last: LastBuild;
  try {
    last = JSON.parse(readFileSync(paths.lastBuild, 'utf8')) as LastBuild;
  } catch {
    return null;
  }
  if (last.node !== process.version || last.manifest !== resolve(manifestPath)) return null;
  for (const path in last.stamps) if (stampAt(path)?.stamp !== last.stamps[path]) return null;
  for (const folder in last.media) {
    const listed = last.media[folder]!;
    for (let i = 0; i < listed.length; i += 2) {
      const facts = statSync(`${paths.site}/${folder}/${listed[i]}`, { throwIfNoEntry: false });
      if (facts?.size !== listed[i + 1]) return null;
    }
  }
  return last.streams;
}
