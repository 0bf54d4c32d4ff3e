// sluice catalogue build: reads the manifest, compares it with the ledger, encodes what is missing, and publishes it in
// one go. Until everything is encoded and every rule has passed, the published site is not touched. A source that cannot
// be published costs its own stream and no other; a rule of the catalogue that would be broken stops everything.
import { statSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { CatalogueError, codeOf, SourcesFailedError } from './catalogue-error.ts';
import { type CatalogueDocument, composeDocument, laterDay } from './document.ts';
import { forEachAtOnce } from './files.ts';
import { judge, missingIds, type Verdict } from './history.ts';
import { rememberBuild } from './last-build.ts';
import { appendLedger, foldLedger, type PublishLine, readLedger, type StreamRecord } from './ledger.ts';
import { type Manifest, parseManifest, type StreamEntry } from './manifest.ts';
import type { Ffmpeg } from './media/ffmpeg.ts';
import type { HlsLayout } from './media/package-hls.ts';
import { missingSource } from './media/source-file.ts';
import {
  checkOneFileSystem,
  checkStage,
  placeMedia,
  placeTexts,
  placeTombstones,
  publishLine,
  readPublished,
  whileLocked,
} from './publish.ts';
import { askedOf, readSideFiles, type SideFiles, sideFilesOf } from './side-files.ts';
import type { SitePaths } from './site-paths.ts';
import { type Patience, SourceDigests, usualPatience } from './sources.ts';
import { type Recipe, type StagedStream, stageStream, stagingKey } from './staging.ts';
import { forgottenLines, readTombstones } from './tombstones.ts';
import { versionFaults } from './version-guard.ts';

export type BuildEvent =
  | { kind: 'plan'; encode: number; keep: number }
  | { kind: 'start' | 'finish' | 'fail'; id: string }
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
  /** Publish nothing unless everything can be published. */
  strict?: boolean;
  /** How long sources must not have changed; by default two seconds. */
  patience?: Patience;
  signal?: AbortSignal;
  report?: (event: BuildEvent) => void;
}

/** What could not be published, and why; streams of one source fail together. */
export interface StreamFailure {
  ids: string[];
  reasons: string[];
}

export interface BuildResult {
  encoded: string[];
  kept: number;
  failed: StreamFailure[];
  document: CatalogueDocument;
}

interface Task {
  entry: StreamEntry;
  source: { sha256: string; stamp: string };
  side: SideFiles;
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

/** A fault of a source, as opposed to one of the machine, such as a full disk. */
function reasonsOf(error: unknown): string[] {
  if (error instanceof CatalogueError) return error.lines;
  throw error;
}

export const failureLines = (failed: StreamFailure[]) =>
  failed.flatMap(({ ids, reasons }) => reasons.map((reason) => `stream ${ids.join(', ')}: ${reason}`));

interface Plan {
  tasks: Task[];
  failed: StreamFailure[];
}

async function planTasks(options: BuildOptions, manifest: Manifest, records: Map<string, StreamRecord>): Promise<Plan> {
  const { report, signal, patience = usualPatience } = options;
  const refusals = missingIds(records, new Set(manifest.streams.map((entry) => entry.id)));
  const digests = await SourceDigests.load(options.paths.sources);
  const plan: Plan = { tasks: [], failed: [] };
  for (const entry of manifest.streams) {
    const onWait = (text: string) => report?.({ kind: 'note', text: `${entry.id}: ${text}` });
    const at = { path: entry.source, name: entry.sourceName };
    const source = await digests.digestOf(at, { patience, signal, onWait }).catch((error) => reasonsOf(error));
    const side = await readSideFiles(entry).catch((error) => reasonsOf(error));
    const digested = Array.isArray(source) || Array.isArray(side) ? null : source;
    const progressive = entry.progressive.map((label) => manifest.renditions.find((each) => each.label === label)!);
    const hls = entry.hls ? manifest.renditions : null;
    const requested = { id: entry.id, sourceSha256: digested?.sha256 ?? null, progressive, hls };
    const asked = Array.isArray(side) ? null : askedOf(entry, side);
    const verdict = judge(records.get(entry.id), { ...requested, asked });
    const faults = [source, side].filter((each) => Array.isArray(each)).flat();
    const missing = faults.length > 0 ? faults : [missingSource(at)];
    if (verdict.kind === 'refuse') refusals.push(...verdict.reasons);
    else if (verdict.kind === 'encode' && digested !== null && !Array.isArray(side))
      plan.tasks.push({ entry, source: digested, side, verdict });
    else if (verdict.kind === 'encode') plan.failed.push({ ids: [entry.id], reasons: missing });
    else if (digested === null)
      report?.({ kind: 'note', text: `${entry.id}: ${missing[0]}; what is published stays as it is` });
  }
  await digests.save();
  if (refusals.length > 0) throw new CatalogueError(refusals);
  return plan;
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

function recipeOf(options: BuildOptions, manifest: Manifest, { entry, source, side, verdict }: Task): Recipe {
  const { progressive, hls, extras } = verdict;
  const { interlaced, deinterlace, language, allowDamaged, audio, loudness } = entry;
  return {
    ...{ sourceSha256: source.sha256, preset: manifest.preset, hlsLayout: options.hlsLayout },
    ...{ progressive, hls, extras, interlaced, deinterlace, language, allowDamaged, audio, loudness, ...side },
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
  const at = { path: entry.source, name: entry.sourceName };
  const task = { recipe: shared.recipe, source: at, sourceStamp: source.stamp };
  for (const id of ids) options.report?.({ kind: 'start', id });
  return stageStream(options.paths.staging, ffmpeg, task, {
    signal: options.signal,
    onShare: (share) => {
      for (const id of ids) options.report?.({ kind: 'progress', id, share });
    },
    onNote: (text) => options.report?.({ kind: 'note', text: `${ids.join(', ')}: ${text}` }),
  });
}

/** Encodes what the plan asks for; what fails joins what has failed already. */
async function encodeAll(options: BuildOptions, manifest: Manifest, plan: Plan): Promise<Map<string, StagedStream>> {
  const staged = new Map<string, StagedStream>();
  if (plan.tasks.length === 0) return staged;
  const ffmpeg = await options.ffmpeg();
  await forEachAtOnce(shareTasks(options, manifest, plan.tasks, ffmpeg.version), options.jobs, async (shared) => {
    options.signal?.throwIfAborted();
    const ids = shared.tasks.map((task) => task.entry.id);
    const finished = (kind: 'finish' | 'fail') => {
      for (const id of ids) options.report?.({ kind, id });
    };
    try {
      const stream = await encodeShared(options, ffmpeg, shared);
      for (const id of ids) staged.set(id, stream);
      finished('finish');
    } catch (error) {
      options.signal?.throwIfAborted();
      plan.failed.push({ ids, reasons: reasonsOf(error) });
      finished('fail');
    }
  });
  return staged;
}

async function buildLocked(options: BuildOptions): Promise<BuildResult> {
  const { paths } = options;
  const startedMs = options.now().getTime();
  const manifest = await readManifest(options.manifestPath);
  const ledger = await readLedger(paths.ledger);
  const tombstones = await readTombstones(paths);
  const forgotten = forgottenLines(foldLedger(ledger.lines), tombstones);
  const history = [...ledger.lines, ...forgotten];
  const records = foldLedger(history);
  const published = await readPublished(paths);
  checkLedgerKnows(published, records, paths.ledger);
  checkPublishedFiles(paths, records);
  const plan = await planTasks(options, manifest, records);
  const { tasks, failed } = plan;
  const keep = manifest.streams.length - tasks.length - failed.length;
  options.report?.({ kind: 'plan', encode: tasks.length, keep });
  if (tasks.length > 0) await checkOneFileSystem(paths);
  const staged = await encodeAll(options, manifest, plan);
  options.signal?.throwIfAborted();

  const at = options.now().toISOString();
  const encoder = tasks.length > 0 ? (await options.ffmpeg()).version : '';
  const compose = (lines: PublishLine[]) => {
    const next = foldLedger([...history, ...lines]);
    return {
      next,
      document: composeDocument(manifest, (id) => next.get(id)?.facts, laterDay(published, at.slice(0, 10))),
    };
  };
  const encoded = tasks.flatMap(({ entry, source, side }) => {
    const { id } = entry;
    const stream = staged.get(id);
    if (stream === undefined) return [];
    const line = publishLine(
      { id, sourceSha256: source.sha256, encoder, at, asked: askedOf(entry, side) },
      records.get(id),
      stream,
    );
    return [{ line, folder: stream.folder }];
  });
  const damaged = await checkStage(encoded, compose(encoded.map(({ line }) => line)).document, options.signal);
  for (const { id, reasons } of damaged) failed.push({ ids: [id], reasons });
  const stage = encoded.filter(({ line }) => !damaged.some(({ id }) => id === line.id));
  const lines = stage.map(({ line }) => line);
  const { next, document } = compose(lines);
  const faults = versionFaults(published, document);
  if (faults.length > 0) throw new CatalogueError([...faults, ...failureLines(failed)]);
  if (failed.length > 0 && options.strict) throw new CatalogueError(failureLines(failed));
  if (failed.length > 0 && published === null && document.streams.length === 0)
    throw new SourcesFailedError(failureLines(failed));

  for (const each of stage) await placeMedia(paths, each, records.get(each.line.id));
  await appendLedger(paths.ledger, ledger.completeBytes, [...forgotten, ...lines]);
  // A site of an older release keeps none; as long as nothing new is published it stays as it is.
  const isWithdrawn = history.some((line) => line.type !== 'publish');
  if (tombstones.length > 0 || (lines.length > 0 && isWithdrawn)) await placeTombstones(paths, history);
  const texts = await placeTexts(paths, next, published, document);
  await rm(paths.staging, { recursive: true, force: true });
  const sources = manifest.streams.flatMap((entry) => [entry.source, ...sideFilesOf(entry)]);
  const { manifestPath } = options;
  // Where something failed, the next build has to try it again.
  if (failed.length === 0)
    await rememberBuild(
      paths,
      { manifestPath, sources, records: next, streams: manifest.streams.length, texts },
      startedMs,
    );
  return { encoded: lines.map((line) => line.id), kept: keep, failed, document };
}

export function buildCatalogue(options: BuildOptions): Promise<BuildResult> {
  return whileLocked(options.paths, () => buildLocked(options));
}
