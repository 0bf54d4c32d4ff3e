import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CatalogueDocument, documentFaults } from './document.ts';
import { versionFaults } from './version-guard.ts';

const base = (): CatalogueDocument => ({
  version: 2,
  updated: '2026-01-31',
  renditions: [{ label: '720p', width: 1280, height: 720, video_kbps: 2500, audio_kbps: 128 }],
  streams: [
    {
      id: 'a',
      title: 'A',
      fps: 25,
      duration_s: 3.5,
      progressive: { '720p': '/media/a/720p.mp4' },
      hls: null,
      note: 'n',
    },
  ],
});

const changed = (change: (document: CatalogueDocument) => void) => {
  const document = structuredClone(base());
  change(document);
  return document;
};

test('an added field never needs a new version', () => {
  const next = changed((document) => {
    Object.assign(document, { generator: 'x' });
    Object.assign(document.renditions[0]!, { codec: 'avc1' });
    document.streams[0]!.language = 'en';
  });
  assert.deepEqual(versionFaults(base(), next), []);
});

test('a removed field stops the publish, unless version rises', () => {
  const remove = (version: number) =>
    changed((document) => {
      document.version = version;
      delete document.streams[0]!.note;
    });
  assert.match(versionFaults(base(), remove(2)).join(), /stream a: note was removed.*version must rise above 2/);
  assert.deepEqual(versionFaults(base(), remove(3)), []);
});

test('a field of another type stops the publish', () => {
  const next = changed((document) => {
    document.streams[0]!.note = 7;
  });
  assert.match(versionFaults(base(), next).join(), /note was string and is now number/);
});

const nested = (value: unknown) =>
  changed((document) => {
    document.streams[0]!.extra = value;
  });

const deep: [what: string, before: unknown, after: unknown, told: RegExp | null][] = [
  ['a nested field removed', { a: { b: 1, c: 2 } }, { a: { b: 1 } }, /stream a: extra\.a\.c was removed/],
  ['a nested field of another type', { a: { b: 1 } }, { a: { b: '1' } }, /extra\.a\.b was number and is now string/],
  ['a nested field added', { a: { b: 1 } }, { a: { b: 1, c: 2 }, d: 3 }, null],
  ['items of another type', ['x'], [1], /extra\[\] was string and is now number/],
  ['an item of a further type', ['x'], ['x', null], /extra\[\] was string and is now null or string/],
  ['fewer items', [1, 2, 3], [4], null],
  ['no items any more', [{ at: 1 }], [], null],
  ['the first items', [], [{ at: 1 }], null],
  ['a field of items removed', [{ at: 1, to: 2 }], [{ at: 1 }], /extra\[\]\.to was removed/],
  ['a field of some items removed', [{ at: 1 }], [{ at: 1 }, {}], /extra\[\]\.at was in every item/],
  ['a field that not every item had', [{ at: 1 }, {}], [{}], null],
  ['items of items of another type', [[1]], [['1']], /extra\[\]\[\] was number and is now string/],
  ['an object that became a list', { a: 1 }, [1], /extra was object and is now array/],
];

for (const [what, before, after, told] of deep) {
  test(`${what}: ${told === null ? 'no new version' : 'version must rise'}`, () => {
    const faults = versionFaults(nested(before), nested(after)).join('\n');
    if (told === null) assert.equal(faults, '');
    else assert.match(faults, told);
  });
}

test('a label that a stream lost is the ledger’s matter, not the guard’s', () => {
  const two = changed((document) => {
    document.renditions.push({ ...document.renditions[0]!, label: '360p' });
    document.streams[0]!.progressive['360p'] = '/media/a/360p.mp4';
  });
  assert.deepEqual(versionFaults(two, base()), []);
});

test('hls may become a path and is still the same field', () => {
  const next = changed((document) => {
    document.streams[0]!.hls = '/media/a/hls/main.m3u8';
  });
  assert.deepEqual(versionFaults(base(), next), []);
});

test('the version cannot fall', () => {
  const published = changed((document) => {
    document.version = 3;
  });
  assert.match(versionFaults(published, base()).join(), /cannot fall/);
});

test('a stream that is gone is the ledger’s matter, not the guard’s', () => {
  assert.deepEqual(versionFaults(base(), { ...base(), streams: [] }), []);
});

const broken: [string, (document: CatalogueDocument) => void, RegExp][] = [
  ['a width that is not whole', (d) => Object.assign(d.renditions[0]!, { width: 1.5 }), /width is not an integer/],
  ['a date with a time', (d) => Object.assign(d, { updated: '2026-01-31T00:00' }), /YYYY-MM-DD/],
  ['a day that does not exist', (d) => Object.assign(d, { updated: '2026-13-01' }), /YYYY-MM-DD/],
  ['a complete address', (d) => Object.assign(d.streams[0]!, { hls: 'https://x/y' }), /root-relative/],
  ['an address of another host', (d) => Object.assign(d.streams[0]!, { hls: '//x/y' }), /root-relative/],
  ['a step up', (d) => Object.assign(d.streams[0]!.progressive, { '720p': '/media/../x' }), /root-relative/],
  ['a label without a rendition', (d) => Object.assign(d.streams[0]!.progressive, { '1p': '/media/a' }), /label 1p/],
  ['hls left out', (d) => Reflect.deleteProperty(d.streams[0]!, 'hls'), /hls/],
  ['an id twice', (d) => d.streams.push(d.streams[0]!), /id twice/],
  ['a duration of zero', (d) => Object.assign(d.streams[0]!, { duration_s: 0 }), /duration_s/],
];

for (const [what, change, told] of broken) {
  test(`the frozen shape of version 2 does not have ${what}`, () =>
    assert.match(documentFaults(changed(change)).join('\n'), told));
}
