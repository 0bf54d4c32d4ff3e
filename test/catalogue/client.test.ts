import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOrigin } from '../../src/catalogue/origin.ts';
import { CatalogueReadError, catalogue, readDocument } from '../../src/client/catalogue.ts';
import { listen, makeBuild, makeSource, writeManifest } from './fixture.ts';

const document = {
  version: 2,
  updated: '2026-01-31',
  added: { later: true },
  renditions: [{ label: '720p', width: 1280, height: 720, video_kbps: 1, audio_kbps: 1, more: 1 }],
  streams: [
    {
      id: 'a',
      title: 'A',
      fps: 25,
      duration_s: 1,
      progressive: { '720p': '/media/a.mp4' },
      hls: '/media/a.m3u8',
      new: 1,
    },
    { id: 'b', title: 'B', fps: 25, duration_s: 1, progressive: {}, hls: null },
  ],
};
const codeOf = (error: unknown) => (error instanceof CatalogueReadError ? error.code : String(error));

test('paths are completed with the origin, added fields are kept', () => {
  const read = readDocument(document, 'https://m.example');
  assert.deepEqual(read.streams[0]!.progressive, { '720p': 'https://m.example/media/a.mp4' });
  assert.equal(read.streams[0]!.hls, 'https://m.example/media/a.m3u8');
  assert.equal(read.streams[0]!.new, 1);
  assert.equal(read.streams[1]!.hls, null);
});

for (const [what, value, code] of [
  ['a version it does not know', { ...document, version: 3 }, 'unknown_version'],
  ['an older version', { ...document, version: 1 }, 'unknown_version'],
  ['no version', { ...document, version: undefined }, 'bad_document'],
  ['streams that are no list', { ...document, streams: {} }, 'bad_document'],
  ['a stream without an id', { ...document, streams: [{}] }, 'bad_document'],
  [
    'a path to another host',
    { ...document, streams: [{ ...document.streams[1], hls: '//evil.example/x' }] },
    'bad_document',
  ],
  ['nothing', null, 'bad_document'],
] as const) {
  test(`refuses ${what}`, () =>
    assert.throws(
      () => readDocument(value, 'https://m.example'),
      (error) => codeOf(error) === code,
    ));
}

test('reads a real catalogue, and asks again only for what changed', async (t) => {
  const build = await makeBuild(t);
  await makeSource(build.folder, 'a.mp4');
  await writeManifest(build.folder, ['{ id: a, title: A, source: a.mp4, progressive: [36p], hls: no }']);
  await build.build();
  const statuses: number[] = [];
  const base = await listen(t, createOrigin(build.paths.site).handle);
  const counting: typeof fetch = async (...args) => {
    const answer = await fetch(...args);
    statuses.push(answer.status);
    return answer;
  };
  const reader = catalogue(`${base}/any/page`, { fetch: counting });
  const stream = await reader.stream('a');
  assert.equal(stream?.progressive['36p'], `${base}/media/a/36p.mp4`);
  assert.equal(await reader.stream('none'), null);
  assert.deepEqual(statuses, [200, 304]);
  assert.equal((await fetch(stream!.progressive['36p']!)).status, 200);
  assert.match((await reader.checksum(stream!.progressive['36p']!)) ?? '', /^[0-9a-f]{64}$/);
  assert.equal(await reader.checksum('/media/none'), null);
  assert.equal(await reader.healthy(), true);
});

test('says why a catalogue cannot be read', async (t) => {
  const base = await listen(t, (request, response) => {
    if (request.url === '/api/streams.json') response.end('<html>');
    else response.writeHead(404).end();
  });
  await assert.rejects(catalogue(base).streams(), (error) => codeOf(error) === 'bad_document');
  assert.equal(await catalogue(base).healthy(), false);
  const gone = catalogue('http://127.0.0.1:1');
  await assert.rejects(gone.streams(), (error) => codeOf(error) === 'unreachable');
  const missing = await listen(t, (_request, response) => response.writeHead(503).end());
  await assert.rejects(catalogue(missing).streams(), (error) => codeOf(error) === 'bad_status');
});
