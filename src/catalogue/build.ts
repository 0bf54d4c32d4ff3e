// sluice catalogue build: reads the manifest, compares it with the ledger, encodes what is missing, and publishes it in
// one go. Until everything is encoded and every rule has passed, the published site is not touched.
import { statSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { CatalogueError, codeOf } from './catalogue-error.ts';
import { type CatalogueDocument, composeDocument } from './document.ts';
import { forEachAtOnce } from './files.ts';
import { judge, missingIds, type Verdict } from './history.ts';
import { rememberBuild } from './last-build.ts';
import { appendLedger, foldLedger, readLedger, type StreamRecord } from './ledger.ts';
import { type Manifest, parseManifest, type StreamEntry } from './manifest.ts';
import type { Ffmpeg } from './media/ffmpeg.ts';
import type { HlsLayout } from './media/package-hls.ts';
import { stampSource } from './media/source-file.ts';
import {
  checkOneFileSystem,
  checkStage,
  placeMedia,
  placeTexts,
  publishLine,
  readPublished,
  whileLocked,
} from './publish.ts';
import type { SitePaths } from './site-paths.ts';
import { type Patience, SourceDigests, usualPatience } from './sources.ts';
import { type Recipe, type StagedStream, stageStream, stagingKey } from './staging.ts';
import { versionFaults } from './version-guard.ts';

export type BuildEvent =
  | { kind: 'plan'; encode: number; keep: number }
  | { kind: 'start' | 'finish'; id: string }
  | { kind: 'progress'; id: string; share: number }
  | { kind: 'note'; text: string };

interface BuildOptions {
  paths: SitePaths;
  manifestPath: string;
  /** Called only when there is something to encode. */
  ffmpeg: () => Promise<Ffmpeg>;
  now: () => Date;
  /** Sources encoded at the same time. */
  jobs: number;
  hlsLayout: HlsLayout;
  /** How long sources must not have changed; by default two seconds. */
  patience?: Patience;
  signal?: AbortSignal;
  report?: (event: BuildEvent) => void;
}

export interface BuildResult {
  encoded: string[];
  kept: number;
  document: CatalogueDocument;
}

interface Task {
  entry: StreamEntry;
  source: { sha256: string; stamp: string };
  verdict: Extract<Verdict, { kind: 'encode' }>;
}

async function readManifest(path: string): Promise<Manifest> {
  try {
    return parseManifest(await readFile(path, 'utf8'), dirname(resolve(path)));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') throw new CatalogueError(`${path} does not exist`);
    if (error instanceof CatalogueError) throw new CatalogueError(error.lines.map((line) => `${path}: ${line}`));
    throw error;
  }
}

/** Folders, pipes and devices are named at once, before the first source is read. */
function oddSources(manifest: Manifest): string[] {
  return manifest.streams.flatMap(({ id, source }) => {
    try {
      stampSource(source);
      return [];
    } catch (error) {
      if (error instanceof CatalogueError) return error.lines.map((line) => `stream ${id}: ${line}`);
      throw error;
    }
  });
}

async function planTasks(
  options: BuildOptions,
  manifest: Manifest,
  records: Map<string, StreamRecord>,
): Promise<Task[]> {
  const { report, signal, patience = usualPatience } = options;
  const odd = oddSources(manifest);
  if (odd.length > 0) throw new CatalogueError(odd);
  const refusals = missingIds(records, new Set(manifest.streams.map((entry) => entry.id)));
  const digests = await SourceDigests.load(options.paths.sources);
  const tasks: Task[] = [];
  for (const entry of manifest.streams) {
    const onWait = (text: string) => report?.({ kind: 'note', text: `${entry.id}: ${text}` });
    const source = await digests.digestOf(entry.source, { patience, signal, onWait });
    const progressive = entry.progressive.map((label) => manifest.renditions.find((each) => each.label === label)!);
    const hls = entry.hls ? manifest.renditions : null;
    const sourceSha256 = source?.sha256 ?? null;
    const verdict = judge(records.get(entry.id), { id: entry.id, sourceSha256, progressive, hls });
    if (verdict.kind === 'refuse') refusals.push(...verdict.reasons);
    if (verdict.kind === 'encode' && source !== null) tasks.push({ entry, source, verdict });
    if (verdict.kind === 'keep' && source === null)
      report?.({ kind: 'note', text: `${entry.id}: its source is gone; what is published stays as it is` });
  }
  await digests.save();
  if (refusals.length > 0) throw new CatalogueError(refusals);
  return tasks;
}

/** Published files must still be there: a build does not hide that a site lost some. */
function checkPublishedFiles(paths: SitePaths, records: Map<string, StreamRecord>): void {
  const faults: string[] = [];
  for (const record of records.values()) {
    if (record.purged) continue;
    for (const [path, file] of record.files) {
      const facts = statSync(join(paths.site, path), { throwIfNoEntry: false });
      if (facts === undefined) faults.push(`${path} was published and is missing; restore it from a copy`);
      else if (facts.size !== file.size) faults.push(`${path} was published with another size; restore it from a copy`);
    }
  }
  if (faults.length > 0) throw new CatalogueError(faults.slice(0, 50));
}

function checkLedgerKnows(
  published: CatalogueDocument | null,
  records: Map<string, StreamRecord>,
  ledger: string,
): void {
  const unknown = (published?.streams ?? []).filter((stream) => !records.has(stream.id));
  if (unknown.length === 0) return;
  throw new CatalogueError(`the site has streams that ${ledger} does not know (${unknown[0]!.id}); restore the ledger`);
}

function recipeOf(options: BuildOptions, manifest: Manifest, { entry, source, verdict }: Task): Recipe {
  const { progressive, hls, extras } = verdict;
  const { interlaced, deinterlace, language, allowDamaged } = entry;
  return {
    ...{ sourceSha256: source.sha256, preset: manifest.preset, hlsLayout: options.hlsLayout },
    ...{ progressive, hls, extras, interlaced, deinterlace, language, allowDamaged },
  };
}

/** Streams of the same source and recipe: encoded once, published under each id. */
interface SharedTask {
  recipe: Recipe;
  tasks: Task[];
}

function shareTasks(options: BuildOptions, manifest: Manifest, tasks: Task[], encoder: string): SharedTask[] {
  const shared = new Map<string, SharedTask>();
  for (const task of tasks) {
    const recipe = recipeOf(options, manifest, task);
    const key = stagingKey(recipe, encoder);
    shared.set(key, { recipe, tasks: [...(shared.get(key)?.tasks ?? []), task] });
  }
  return [...shared.values()];
}

async function encodeShared(options: BuildOptions, ffmpeg: Ffmpeg, shared: SharedTask): Promise<StagedStream> {
  const { entry, source } = shared.tasks[0]!;
  const ids = shared.tasks.map((task) => task.entry.id);
  const task = { recipe: shared.recipe, source: entry.source, sourceStamp: source.stamp };
  for (const id of ids) options.report?.({ kind: 'start', id });
  return stageStream(options.paths.staging, ffmpeg, task, {
    signal: options.signal,
    onShare: (share) => {
      for (const id of ids) options.report?.({ kind: 'progress', id, share });
    },
    onNote: (text) => options.report?.({ kind: 'note', text: `${ids.join(', ')}: ${text}` }),
  });
}

async function encodeAll(options: BuildOptions, manifest: Manifest, tasks: Task[]): Promise<Map<string, StagedStream>> {
  const staged = new Map<string, StagedStream>();
  if (tasks.length === 0) return staged;
  const ffmpeg = await options.ffmpeg();
  const faults: string[] = [];
  await forEachAtOnce(shareTasks(options, manifest, tasks, ffmpeg.version), options.jobs, async (shared) => {
    options.signal?.throwIfAborted();
    const ids = shared.tasks.map((task) => task.entry.id);
    try {
      const stream = await encodeShared(options, ffmpeg, shared);
      for (const id of ids) staged.set(id, stream);
    } catch (error) {
      // A source that cannot be encoded stops the publish. The others are encoded still: the next build finds them staged.
      if (!(error instanceof CatalogueError)) throw error;
      faults.push(...error.lines.map((line) => `stream ${ids.join(', ')}: ${line}`));
    }
    for (const id of ids) options.report?.({ kind: 'finish', id });
  });
  if (faults.length > 0) throw new CatalogueError(faults);
  return staged;
}

async function buildLocked(options: BuildOptions): Promise<BuildResult> {
  const { paths } = options;
  const startedMs = options.now().getTime();
  const manifest = await readManifest(options.manifestPath);
  const ledger = await readLedger(paths.ledger);
  const records = foldLedger(ledger.lines);
  const published = await readPublished(paths);
  checkLedgerKnows(published, records, paths.ledger);
  checkPublishedFiles(paths, records);
  const tasks = await planTasks(options, manifest, records);
  options.report?.({ kind: 'plan', encode: tasks.length, keep: manifest.streams.length - tasks.length });
  if (tasks.length > 0) await checkOneFileSystem(paths);
  const staged = await encodeAll(options, manifest, tasks);
  options.signal?.throwIfAborted();

  const at = options.now().toISOString();
  const encoder = tasks.length > 0 ? (await options.ffmpeg()).version : '';
  const lines = tasks.map(({ entry: { id }, source }) =>
    publishLine({ id, sourceSha256: source.sha256, encoder, at }, records.get(id), staged.get(id)!),
  );
  const next = foldLedger([...ledger.lines, ...lines]);
  const document = composeDocument(manifest, (id) => next.get(id)?.facts, at.slice(0, 10));
  const faults = versionFaults(published, document);
  if (faults.length > 0) throw new CatalogueError(faults);

  const stage = lines.map((line) => ({ line, folder: staged.get(line.id)!.folder }));
  await checkStage(stage, document, options.signal);
  for (const each of stage) await placeMedia(paths, each, records.get(each.line.id));
  await appendLedger(paths.ledger, ledger.completeBytes, lines);
  const texts = await placeTexts(paths, next, published, document);
  await rm(paths.staging, { recursive: true, force: true });
  const sources = manifest.streams.map((entry) => entry.source);
  const { manifestPath } = options;
  await rememberBuild(paths, { manifestPath, sources, records: next, streams: sources.length, texts }, startedMs);
  return { encoded: lines.map((line) => line.id), kept: manifest.streams.length - lines.length, document };
}

export function buildCatalogue(options: BuildOptions): Promise<BuildResult> {
  return whileLocked(options.paths, () => buildLocked(options));
}
