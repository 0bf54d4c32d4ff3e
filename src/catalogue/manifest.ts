// catalogue.yaml → a checked Manifest. Every mistake is reported, each with the place it was made in.
import { resolve } from 'node:path';
import { parseDocument } from 'yaml';
import { CatalogueError } from './fault.ts';

export interface Rendition {
  label: string;
  width: number;
  height: number;
  video_kbps: number;
  audio_kbps: number;
}

export const presets = ['ultrafast', 'superfast', 'veryfast', 'faster', 'fast', 'medium', 'slow', 'slower'] as const;
export type Preset = (typeof presets)[number];

export interface StreamEntry {
  id: string;
  title: string;
  /** Absolute path of the source video. */
  source: string;
  /** Labels wanted as progressive files. */
  progressive: string[];
  hls: boolean;
  /** Overrides what the source says of itself. */
  interlaced: boolean | null;
  /** Added fields, copied into the document. */
  fields: Record<string, unknown>;
}

export interface Manifest {
  version: number;
  preset: Preset;
  renditions: Rendition[];
  streams: StreamEntry[];
}

export const MAX_MANIFEST_BYTES = 16 * 1024 * 1024;
const MAX_STREAMS = 50_000;
const MAX_RENDITIONS = 32;
const ID = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const LABEL = /^[a-z0-9][a-z0-9_-]{0,31}$/;
const FIELD = /^[a-z][a-z0-9_]{0,63}$/;
/** What the catalogue itself says of a stream; a manifest cannot say it otherwise. */
export const ownStreamFields = ['id', 'title', 'fps', 'duration_s', 'progressive', 'hls', 'poster', 'thumbnails'];

type Fields = Record<string, unknown>;

class Checker {
  readonly faults: string[] = [];

  fault(place: string, message: string): void {
    if (this.faults.length < 100) this.faults.push(`${place}: ${message}`);
  }

  object(value: unknown, place: string, allowed: string[]): Fields {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.fault(place, 'must be a mapping');
      return {};
    }
    for (const name of Object.keys(value)) {
      if (!allowed.includes(name)) this.fault(place, `has an unknown field "${name}" (known: ${allowed.join(', ')})`);
    }
    return value as Fields;
  }

  list(value: unknown, place: string, most: number): unknown[] {
    if (!Array.isArray(value)) {
      this.fault(place, 'must be a list');
      return [];
    }
    if (value.length > most) this.fault(place, `has ${value.length} items, at most ${most} are allowed`);
    return value.slice(0, most);
  }

  integer(value: unknown, place: string, least: number, most: number): number {
    if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
    this.fault(place, `must be a whole number from ${least} to ${most}`);
    return least;
  }

  /** YAML 1.2 knows true and false; people write yes and no. */
  yesOrNo(value: unknown, place: string): boolean {
    if (value === true || value === 'yes') return true;
    if (value !== false && value !== 'no') this.fault(place, 'must be yes or no');
    return false;
  }

  pattern(value: unknown, place: string, pattern: RegExp, rule: string): string {
    if (typeof value === 'string' && pattern.test(value)) return value;
    this.fault(place, rule);
    return '';
  }

  unique(values: string[], place: string): void {
    const seen = new Set<string>();
    for (const value of values) {
      if (value !== '' && seen.has(value)) this.fault(place, `"${value}" is there twice`);
      seen.add(value);
    }
  }
}

const labelRule = 'must be 1 to 32 of a-z, 0-9, - and _, such as 720p';
const idRule = 'must be 1 to 64 of a-z, 0-9, - and _, starting with a letter or digit';

function checkRendition(check: Checker, value: unknown, place: string): Rendition {
  const fields = check.object(value, place, ['label', 'width', 'height', 'video_kbps', 'audio_kbps']);
  return {
    label: check.pattern(fields.label, `${place}.label`, LABEL, labelRule),
    width: check.integer(fields.width, `${place}.width`, 16, 8192),
    height: check.integer(fields.height, `${place}.height`, 16, 8192),
    video_kbps: check.integer(fields.video_kbps, `${place}.video_kbps`, 16, 200_000),
    audio_kbps: check.integer(fields.audio_kbps, `${place}.audio_kbps`, 16, 512),
  };
}

function checkAddedFields(check: Checker, value: unknown, place: string): Fields {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) {
    check.fault(place, 'must be a mapping');
    return {};
  }
  for (const name of Object.keys(value)) {
    if (!FIELD.test(name)) check.fault(place, `"${name}" must be snake_case`);
    if (ownStreamFields.includes(name)) check.fault(place, `"${name}" is one of the catalogue's own fields`);
  }
  return value as Fields;
}

function checkStream(check: Checker, value: unknown, place: string, labels: string[], folder: string): StreamEntry {
  const known = ['id', 'title', 'source', 'progressive', 'hls', 'interlaced', 'fields'];
  const fields = check.object(value, place, known);
  const progressive = check.list(fields.progressive ?? [], `${place}.progressive`, MAX_RENDITIONS).map((label) => {
    if (typeof label === 'string' && labels.includes(label)) return label;
    check.fault(`${place}.progressive`, `"${String(label)}" is not a label of renditions`);
    return '';
  });
  check.unique(progressive, `${place}.progressive`);
  const hls = check.yesOrNo(fields.hls ?? true, `${place}.hls`);
  if (!hls && progressive.length === 0) check.fault(place, 'has neither progressive files nor HLS');
  return {
    id: check.pattern(fields.id, `${place}.id`, ID, idRule),
    title: check.pattern(fields.title, `${place}.title`, /^[^\0-\x1f\x7f]{1,200}$/, 'must be 1 to 200 characters'),
    source: resolve(folder, check.pattern(fields.source, `${place}.source`, /^[^\0]{1,4096}$/, 'must name a file')),
    progressive,
    hls,
    interlaced: fields.interlaced == null ? null : check.yesOrNo(fields.interlaced, `${place}.interlaced`),
    fields: checkAddedFields(check, fields.fields, `${place}.fields`),
  };
}

/** Parses and checks a manifest; relative sources are taken from `folder`. Throws a CatalogueError with every mistake. */
export function parseManifest(text: string, folder: string): Manifest {
  if (Buffer.byteLength(text) > MAX_MANIFEST_BYTES) throw new CatalogueError('the manifest is larger than 16 MiB');
  const yaml = parseDocument(text, { schema: 'core' });
  if (yaml.errors.length > 0) throw new CatalogueError(yaml.errors.slice(0, 10).map((error) => error.message));
  const check = new Checker();
  const root = check.object(yaml.toJS({ maxAliasCount: 100 }), 'manifest', [
    'version',
    'preset',
    'renditions',
    'streams',
  ]);
  const preset = presets.find((name) => name === (root.preset ?? 'medium'));
  if (preset === undefined) check.fault('preset', `must be one of ${presets.join(', ')}`);
  const renditions = check
    .list(root.renditions, 'renditions', MAX_RENDITIONS)
    .map((value, i) => checkRendition(check, value, `renditions[${i}]`));
  const labels = renditions.map((rendition) => rendition.label);
  check.unique(labels, 'renditions');
  if (renditions.length === 0) check.fault('renditions', 'must name at least one');
  const streams = check
    .list(root.streams ?? [], 'streams', MAX_STREAMS)
    .map((value, i) => checkStream(check, value, `streams[${i}]`, labels, folder));
  check.unique(
    streams.map((stream) => stream.id),
    'streams',
  );
  const version = root.version === undefined ? 2 : check.integer(root.version, 'version', 2, 1_000_000);
  if (check.faults.length > 0) throw new CatalogueError(check.faults);
  return { version, preset: preset ?? 'medium', renditions, streams };
}
