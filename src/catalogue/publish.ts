// Putting a checked change into the site, and withdrawing streams from it. The order gives readers a complete catalogue
// at every moment, also after a crash: media (which nothing names yet), ledger, gallery, SHA256SUMS, and the document
// last.
import { existsSync, mkdirSync } from 'node:fs';
import { link, mkdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CatalogueError, codeOf } from './catalogue-error.ts';
import { type CatalogueDocument, encodeDocument, laterDay, type StreamFacts, sameContent } from './document.ts';
import { listFiles, placeLink, replaceFile, syncPath } from './files.ts';
import {
  appendLedger,
  foldLedger,
  type LedgerLine,
  type PublishLine,
  readLedger,
  type StreamRecord,
} from './ledger.ts';
import type { Rendition } from './manifest.ts';
import { CHAPTERS_NAME } from './media/encode.ts';
import { POSTER_NAME, progressiveName } from './media/encode-args.ts';
import { MULTIVARIANT_NAME } from './media/package-hls.ts';
import { DOCUMENT_PATH, HEALTH_BYTES, HEALTH_PATH, type SitePaths, SUMS_PATH, TOMBSTONES_PATH } from './site-paths.ts';
import { compressedForms, formatSums, formSuffixes, galleryFiles, needsForms } from './site-texts.ts';
import type { StagedStream } from './staging.ts';
import { allTombstones, encodeTombstones, forgottenLines, readTombstones } from './tombstones.ts';
import { FilesOnce, formFault } from './verify/verify-files.ts';
import { type StagedFiles, verifyStage } from './verify/verify-stream.ts';

/**
 * Runs a task while no other process builds or withdraws in the same site. The operating system holds the lock, taken
 * through SQLite: it cannot outlive the process, so a crash leaves no stale lock to clear.
 */
export async function whileLocked<T>(paths: SitePaths, task: () => Promise<T>): Promise<T> {
  mkdirSync(paths.state, { recursive: true });
  const lock = new DatabaseSync(join(paths.state, 'lock'));
  try {
    try {
      lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    } catch (error) {
      if (!(error as Error).message.includes('locked')) throw error;
      throw new CatalogueError(`another command is at work on ${paths.site}; wait until it has ended`);
    }
    return await task();
  } finally {
    lock.close();
  }
}

function captionFacts({ encoded }: StagedStream, at: (name: string) => string): Pick<StreamFacts, 'captions'> {
  if (encoded.captions.length === 0) return {};
  return { captions: encoded.captions.map(({ file, ...about }) => ({ ...about, path: at(file) })) };
}

/** What people want to know before they watch: how fine the picture is, and what a file costs to load. */
function sizeFacts(
  record: StreamRecord | undefined,
  { encoded, files }: StagedStream,
): Pick<StreamFacts, 'width' | 'height' | 'bytes'> {
  const before = record?.facts;
  const isLargest = encoded.width > (before?.width ?? 0) && !mayHaveLarger(record, encoded);
  const { width = 0, height = 0 } = (isLargest ? encoded : before) ?? {};
  const published = Object.entries(before?.progressive ?? {}).map(
    ([label, path]) => [label, record!.files.get(path.slice(1))!.size] as const,
  );
  const added = encoded.progressive.map(({ label }) => [label, files[progressiveName(label)]!.size] as const);
  const bytes = Object.fromEntries([...published, ...added]);
  return { ...(width > 0 ? { width, height } : {}), ...(Object.keys(bytes).length > 0 ? { bytes } : {}) };
}

/** Of a stream from before sizes were written down, only the ladder tells whether what is added is larger. */
function mayHaveLarger(record: StreamRecord | undefined, { progressive, hls }: StagedStream['encoded']): boolean {
  if (record === undefined || record.facts.width !== undefined) return false;
  const largest = (renditions: Rendition[]) => Math.max(0, ...renditions.map((each) => each.width * each.height));
  const published = [...record.progressive.values(), ...(record.hls ?? [])];
  return largest(published) > largest([...progressive, ...(hls ?? [])]);
}

function factsOf(id: string, record: StreamRecord | undefined, staged: StagedStream): StreamFacts {
  const at = (name: string) => `/media/${id}/${name}`;
  const added = staged.encoded.progressive.map(({ label }) => [label, at(progressiveName(label))] as const);
  return {
    // A large rung that is added may show every frame where the small ones show every second.
    fps: Math.max(record?.facts.fps ?? 0, staged.encoded.fps),
    duration_s: record?.facts.duration_s ?? staged.encoded.duration_s,
    progressive: { ...record?.facts.progressive, ...Object.fromEntries(added) },
    hls: record?.facts.hls ?? (staged.encoded.hls === null ? null : at(MULTIVARIANT_NAME)),
    poster: record?.facts.poster ?? at(POSTER_NAME),
    thumbnails: record?.facts.thumbnails ?? at('thumbs.vtt'),
    ...sizeFacts(record, staged),
    ...(record?.facts.captions ? { captions: record.facts.captions } : captionFacts(staged, at)),
    ...(staged.encoded.audio.length > 0 ? { audio: staged.encoded.audio } : {}),
    ...(record?.facts.audio ? { audio: record.facts.audio } : {}),
    ...(staged.encoded.chapters || record?.facts.chapters ? { chapters: at(CHAPTERS_NAME) } : {}),
  };
}

interface PublishedFrom {
  id: string;
  sourceSha256: string;
  encoder: string;
  /** Captions, sound and chapters that the manifest asks for. */
  asked: string;
  /** When it is published, ISO 8601. */
  at: string;
}

/** The ledger's line for a staged stream; throws where a path would get other content than it has. */
export function publishLine(
  { id, sourceSha256, encoder, at, asked }: PublishedFrom,
  record: StreamRecord | undefined,
  staged: StagedStream,
): PublishLine {
  const files = Object.entries(staged.files).map(([name, file]) => [`media/${id}/${name}`, file] as const);
  const conflict = files.find(([path, file]) => (record?.files.get(path)?.sha256 ?? file.sha256) !== file.sha256);
  if (conflict !== undefined) throw new CatalogueError(`stream ${id}: ${conflict[0]} is published with other content`);
  return {
    type: 'publish',
    at,
    id,
    source_sha256: sourceSha256,
    encoder,
    progressive: staged.encoded.progressive,
    hls: staged.encoded.hls,
    left_out: staged.encoded.leftOut,
    ...(asked === '' ? {} : { asked }),
    facts: factsOf(id, record, staged),
    files: Object.fromEntries(files),
  };
}

export async function readPublished(paths: SitePaths): Promise<CatalogueDocument | null> {
  try {
    return JSON.parse(await readFile(join(paths.site, DOCUMENT_PATH), 'utf8')) as CatalogueDocument;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    if (error instanceof SyntaxError) throw new CatalogueError(`${DOCUMENT_PATH} is damaged; restore it from a copy`);
    throw error;
  }
}

const MOST_LINES = 10;

/**
 * The staged streams whose files are not what the document would say of them: they must not be published. They leave
 * staging, and the next build encodes them again.
 */
export async function checkStage(
  staged: StagedFiles[],
  document: CatalogueDocument,
  signal?: AbortSignal,
): Promise<{ id: string; reasons: string[] }[]> {
  const damaged = await verifyStage(staged, document, signal);
  for (const { folder } of damaged) await rm(dirname(folder), { recursive: true, force: true });
  return damaged.map(({ id, faults }) => {
    const more = faults.length > MOST_LINES ? [`and ${faults.length - MOST_LINES} more faults`] : [];
    return {
      id,
      reasons: [...faults.slice(0, MOST_LINES).map((fault) => `${fault} (encoded, not published)`), ...more],
    };
  });
}

/** Finished files are linked into the site: tries it, so that hours of encoding do not end with a link that cannot be. */
export async function checkOneFileSystem({ site, staging }: SitePaths): Promise<void> {
  const media = join(site, 'media');
  await Promise.all([mkdir(media, { recursive: true }), mkdir(staging, { recursive: true })]);
  // Always the same names: what a crash leaves of them, the next build takes away. Servers do not show dot files.
  const [from, to] = [join(staging, 'trial'), join(media, '.trial')];
  await rm(to, { force: true });
  try {
    await replaceFile(from, '');
    await link(from, to);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EXDEV')
      throw new CatalogueError(
        `${media} and ${staging} are on different file systems; put the site and its state on one`,
      );
    if (code === 'EPERM' || code === 'ENOTSUP' || code === 'EOPNOTSUPP')
      throw new CatalogueError(`files cannot be linked from ${staging} into ${media}: ${code}`);
    throw error;
  } finally {
    await Promise.all([rm(from, { force: true }), rm(to, { force: true })]);
  }
}

/**
 * Links a stream's staged files into the site. What an interrupted publish left there is replaced, or removed where it has
 * no successor: nothing names it, but a server would send a compressed form of it.
 */
export async function placeMedia(
  paths: SitePaths,
  { line, folder }: StagedFiles,
  published: StreamRecord | undefined,
): Promise<void> {
  const top = join(paths.site, 'media', line.id);
  const folders = new Set<string>([top, dirname(top)]);
  for (const path of Object.keys(line.files)) {
    const target = join(paths.site, path);
    await mkdir(dirname(target), { recursive: true });
    await placeLink(join(folder, path.slice(`media/${line.id}/`.length)), target, paths.staging);
    folders.add(dirname(target));
  }
  for (const name of await listFiles(top)) {
    const path = `media/${line.id}/${name}`;
    if (!(path in line.files) && !published?.files.has(path)) await rm(join(top, name));
  }
  for (const each of folders) if (existsSync(each)) await syncPath(each);
}

async function writeForms(target: string, bytes: Buffer, staging: string): Promise<void> {
  for (const form of await compressedForms(bytes)) await replaceFile(target + form.suffix, form.bytes, staging);
}

async function removeForms(target: string): Promise<void> {
  const there = formSuffixes.filter((suffix) => existsSync(target + suffix));
  for (const suffix of there) await rm(target + suffix, { force: true });
  if (there.length > 0) await syncPath(dirname(target));
}

/** The text is as it should be; a publish that was cut short may have left it without its compressed forms. */
async function repairForms({ site, staging }: SitePaths, path: string, bytes: Buffer): Promise<void> {
  const files = new FilesOnce((each) => join(site, each));
  const target = join(site, path);
  const wanted = needsForms(bytes) ? formSuffixes : (await compressedForms(bytes)).map(({ suffix }) => suffix);
  const isRight = (suffix: (typeof formSuffixes)[number]) =>
    wanted.includes(suffix) ? formFault(files, path + suffix) === null : !existsSync(target + suffix);
  if (formSuffixes.every(isRight)) return;
  await removeForms(target);
  await writeForms(target, bytes, staging);
}

/**
 * Replaces a text and its compressed forms. Servers send a form as they find it, without reading the text. So the old
 * forms go first and the new ones come last: wherever this stops, there is no form that differs from its text.
 */
async function placeText(paths: SitePaths, path: string, text: string | Buffer): Promise<void> {
  const target = join(paths.site, path);
  const bytes = Buffer.from(text as string);
  const current = await readFile(target).catch(() => null);
  if (current?.equals(bytes)) return repairForms(paths, path, bytes);
  await removeForms(target);
  await replaceFile(target, bytes, paths.staging);
  await writeForms(target, bytes, paths.staging);
}

function sumsOf(records: Iterable<StreamRecord>): string {
  const digests = new Map<string, string>();
  for (const record of records) {
    if (record.purged) continue;
    for (const [path, file] of record.files) digests.set(path.slice('media/'.length), file.sha256);
  }
  return formatSums(digests);
}

async function placeDocument(
  paths: SitePaths,
  published: CatalogueDocument | null,
  next: CatalogueDocument,
): Promise<void> {
  // With nothing but another date the document stays as it is.
  const isSame = published !== null && sameContent(published, next);
  const text = isSame ? await readFile(join(paths.site, DOCUMENT_PATH)) : encodeDocument(next);
  await placeText(paths, DOCUMENT_PATH, text);
}

export async function placeTombstones(paths: SitePaths, lines: LedgerLine[]): Promise<void> {
  const all = allTombstones(lines, await readTombstones(paths));
  await placeText(paths, TOMBSTONES_PATH, encodeTombstones(all));
}

/** Gives the paths of all texts, compressed forms included. */
export async function placeTexts(
  paths: SitePaths,
  records: Map<string, StreamRecord>,
  published: CatalogueDocument | null,
  next: CatalogueDocument,
): Promise<string[]> {
  const gallery = await galleryFiles();
  await placeText(paths, HEALTH_PATH, HEALTH_BYTES);
  for (const [path, bytes] of gallery) await placeText(paths, path, bytes);
  await placeText(paths, SUMS_PATH, sumsOf(records.values()));
  await placeDocument(paths, published, next);
  return [HEALTH_PATH, ...gallery.keys(), SUMS_PATH, DOCUMENT_PATH].flatMap((path) => {
    const forms = formSuffixes.map((suffix) => path + suffix).filter((form) => existsSync(join(paths.site, form)));
    return [path, ...forms];
  });
}

/** In the reverse order: first the document stops naming the files, then the checksums do, then the files go. */
async function removeFromSite(
  paths: SitePaths,
  records: Map<string, StreamRecord>,
  published: CatalogueDocument | null,
  next: CatalogueDocument,
): Promise<void> {
  await placeDocument(paths, published, next);
  await placeText(paths, SUMS_PATH, sumsOf(records.values()));
  for (const record of records.values()) {
    const folder = join(paths.site, 'media', record.id);
    if (record.purged && existsSync(folder)) await rm(folder, { recursive: true });
  }
}

interface WithdrawOptions {
  paths: SitePaths;
  id: string;
  purge: boolean;
  now: () => Date;
}

async function withdrawLocked({ paths, id, purge, now }: WithdrawOptions): Promise<void> {
  const ledger = await readLedger(paths.ledger);
  const forgotten = forgottenLines(foldLedger(ledger.lines), await readTombstones(paths));
  const history = [...ledger.lines, ...forgotten];
  const record = foldLedger(history).get(id);
  const published = await readPublished(paths);
  if (record === undefined || published === null) throw new CatalogueError(`stream ${id} was never published`);
  const at = now().toISOString();
  const lines: LedgerLine[] = [...forgotten];
  if (!record.withdrawn) lines.push({ type: 'withdraw', at, id });
  if (purge && !record.purged) lines.push({ type: 'purge', at, id });
  // The ledger first: after a crash here the id is withdrawn already, and the same command finishes the rest.
  await appendLedger(paths.ledger, ledger.completeBytes, lines);
  await placeTombstones(paths, [...ledger.lines, ...lines]);
  const records = foldLedger([...ledger.lines, ...lines]);
  const streams = published.streams.filter((stream) => !records.get(stream.id)?.withdrawn);
  await removeFromSite(paths, records, published, {
    ...published,
    updated: laterDay(published, at.slice(0, 10)),
    streams,
  });
}

/**
 * The document stops naming the stream, for good. Its files stay, so that a player with the old document can finish; with
 * `purge` they are removed once the document no longer names them.
 */
export function withdrawStream(options: WithdrawOptions): Promise<void> {
  return whileLocked(options.paths, () => withdrawLocked(options));
}
