import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judge, missingIds } from './history.ts';
import { foldLedger, type LedgerLine, type PublishLine } from './ledger.ts';
import type { Rendition } from './manifest.ts';

const small: Rendition = { label: '360p', width: 640, height: 360, video_kbps: 800, audio_kbps: 96 };
const large: Rendition = { label: '720p', width: 1280, height: 720, video_kbps: 2500, audio_kbps: 128 };

const published: PublishLine = {
  type: 'publish',
  at: '2026-01-01T00:00:00.000Z',
  id: 'a',
  source_sha256: 'one',
  encoder: 'ffmpeg 1',
  progressive: [small],
  hls: [small],
  left_out: ['1080p'],
  facts: { fps: 25, duration_s: 1, progressive: {}, hls: null, poster: '/p', thumbnails: '/t' },
  files: { 'media/a/360p.mp4': { sha256: 'x', size: 1 } },
};
const record = (...more: LedgerLine[]) => foldLedger([structuredClone(published), ...more]).get('a');
const wanted = { id: 'a', sourceSha256: 'one', progressive: [small], hls: [small], asked: '' };

test('a new id is encoded whole', () => {
  assert.deepEqual(judge(undefined, wanted), { kind: 'encode', progressive: [small], hls: [small], extras: true });
});

test('the same again is kept, also when the source is gone', () => {
  assert.deepEqual(judge(record(), wanted), { kind: 'keep' });
  assert.deepEqual(judge(record(), { ...wanted, sourceSha256: null }), { kind: 'keep' });
});

test('a rendition added to the manifest does not touch a published ladder', () => {
  assert.deepEqual(judge(record(), { ...wanted, hls: [small, large] }), { kind: 'keep' });
});

test('a further progressive file is made, without touching the others', () => {
  const verdict = judge(record(), { ...wanted, progressive: [small, large] });
  assert.deepEqual(verdict, { kind: 'encode', progressive: [large], hls: null, extras: false });
});

test('a label that was larger than the source is not tried again', () => {
  const full: Rendition = { ...large, label: '1080p' };
  assert.deepEqual(judge(record(), { ...wanted, progressive: [small, full] }), { kind: 'keep' });
});

const refused: [string, Parameters<typeof judge>, RegExp][] = [
  ['another source', [record(), { ...wanted, sourceSha256: 'two' }], /another source/],
  ['captions added later', [record(), { ...wanted, asked: '{"captions":[]}' }], /need a new id/],
  ['a withdrawn id', [record({ type: 'withdraw', at: '', id: 'a' }), wanted], /withdrawn/],
  ['other numbers', [record(), { ...wanted, progressive: [{ ...small, video_kbps: 900 }] }], /other numbers/],
  ['other numbers in the ladder', [record(), { ...wanted, hls: [{ ...small, width: 641 }] }], /other numbers/],
  ['a file taken away', [record(), { ...wanted, progressive: [] }], /cannot be taken away/],
  ['HLS taken away', [record(), { ...wanted, hls: null }], /cannot be taken away/],
];

for (const [what, args, told] of refused) {
  test(`refuses ${what}`, () => {
    const verdict = judge(...args);
    assert.equal(verdict.kind, 'refuse');
    assert.match(verdict.kind === 'refuse' ? verdict.reasons.join() : '', told);
  });
}

test('a published id that the manifest forgot is told, a withdrawn one is not', () => {
  const records = foldLedger([published]);
  assert.match(missingIds(records, new Set())[0] ?? '', /withdraw a/);
  assert.deepEqual(missingIds(foldLedger([published, { type: 'withdraw', at: '', id: 'a' }]), new Set()), []);
});
