import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CatalogueError } from './catalogue-error.ts';
import { parseManifest } from './manifest.ts';

const renditions = 'renditions:\n  - {label: 720p, width: 1280, height: 720, video_kbps: 2500, audio_kbps: 128}\n';
const stream = (fields: string) => `${renditions}streams:\n  - {${fields}}\n`;

function faultsOf(text: string): string[] {
  try {
    parseManifest(text, '/videos');
  } catch (error) {
    if (error instanceof CatalogueError) return error.lines;
    throw error;
  }
  return [];
}

test('a manifest gives streams with their defaults and absolute sources', () => {
  const manifest = parseManifest(stream('id: a, title: A film, source: a.mov, progressive: [720p]'), '/videos');
  assert.deepEqual(manifest.streams[0], {
    id: 'a',
    title: 'A film',
    source: '/videos/a.mov',
    sourceName: 'a.mov',
    captions: [],
    audio: null,
    chapters: null,
    loudness: null,
    progressive: ['720p'],
    hls: true,
    interlaced: null,
    deinterlace: 'single',
    language: null,
    allowDamaged: false,
    fields: {},
  });
  assert.equal(manifest.version, 2);
  assert.equal(manifest.preset, 'medium');
});

test('yes and no are understood as people write them', () => {
  const hls = (word: string) =>
    parseManifest(stream(`id: a, title: A, source: a, progressive: [720p], hls: ${word}`), '/').streams[0]!.hls;
  assert.deepEqual(['yes', 'no', 'true', 'false'].map(hls), [true, false, true, false]);
});

const mistakes: [what: string, manifest: string, told: RegExp][] = [
  ['an id that is a path', stream('id: ../x, title: T, source: s'), /streams\[0\]\.id/],
  ['an id in capitals', stream('id: Film, title: T, source: s'), /streams\[0\]\.id/],
  ['an unknown label', stream('id: a, title: T, source: s, progressive: [4k]'), /"4k" is not a label/],
  ['a label twice', stream('id: a, title: T, source: s, progressive: [720p, 720p]'), /"720p" is there twice/],
  ['nothing to make', stream('id: a, title: T, source: s, hls: no'), /neither progressive files nor HLS/],
  ['an unknown field', stream('id: a, title: T, source: s, hsl: yes'), /unknown field "hsl"/],
  ['a field of the catalogue itself', stream('id: a, title: T, source: s, fields: {fps: 1}'), /own fields/],
  [
    'not a number',
    stream('id: a, title: T, source: s, fields: {x: {y: [1, .nan]}}'),
    /fields\.x\.y\[1\]: must be a finite/,
  ],
  [
    'infinity',
    stream('id: a, title: T, source: s, fields: {x: -.inf}'),
    /streams\[0\]\.fields\.x: must be a finite number/,
  ],
  [
    'more digits than a number has',
    stream('id: a, title: T, source: s, fields: {x: 12345678901234567}'),
    /to be exact/,
  ],
  ['no title', stream('id: a, source: s'), /streams\[0\]\.title/],
  ['an id twice', `${stream('id: a, title: T, source: s')}  - {id: a, title: T, source: s}\n`, /"a" is there twice/],
  ['no renditions', 'renditions: []\nstreams: []\n', /at least one/],
  ['a width in words', renditions.replace('1280', 'wide'), /width: must be a whole number/],
  ['something that is not YAML', 'renditions: [', /./],
  ['a list instead of a mapping', '- a\n', /must be a mapping/],
  ['an unknown preset', `preset: best\n${renditions}`, /preset: must be one of/],
];

for (const [what, manifest, told] of mistakes) {
  test(`refuses ${what}`, () => assert.match(faultsOf(manifest).join('\n'), told));
}

test('tells every mistake at once', () => {
  assert.equal(faultsOf(stream('id: A B, title: "", source: s, progressive: [x], extra: 1')).length, 4);
});

test('a document full of aliases is refused, not expanded', () => {
  const bomb = `a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [${'*a,'.repeat(50)}1]\nc: &c [${'*b,'.repeat(50)}1]\nd: [${'*c,'.repeat(50)}1]\n`;
  assert.throws(
    () => parseManifest(bomb, '/'),
    (error: unknown) => error instanceof CatalogueError && error.lines.length === 1 && !error.lines[0]!.includes('\n'),
  );
});

test('aliases that lead nowhere, and nesting without end, are told in one line', () => {
  for (const [text, line] of [
    ['streams: *nowhere', /^the manifest has aliases that cannot be resolved: .*nowhere$/],
    ['['.repeat(20_000), /^the manifest is nested too deep$/],
  ] as const) {
    assert.throws(
      () => parseManifest(text, '/'),
      (error: unknown) => error instanceof CatalogueError && error.lines.length === 1 && line.test(error.lines[0]!),
    );
  }
});
