import assert from 'node:assert/strict';
import { test } from 'node:test';
// @ts-expect-error: a script of the page, without types
import * as text from './text.js';

test('times are written as people read them', () => {
  assert.deepEqual([0, 5.9, 65, 3725, Number.NaN].map(text.clock), ['0:00', '0:05', '1:05', '1:02:05', '0:00']);
});

test('only paths of the same origin become addresses', () => {
  const origin = 'https://media.example';
  assert.equal(text.address('/media/a.mp4', origin), 'https://media.example/media/a.mp4');
  for (const path of [
    '//evil.example/x',
    'https://evil.example/x',
    'javascript:alert(1)',
    'media/a',
    null,
    undefined,
    '/\\evil',
  ])
    assert.ok(
      [null, 'https://media.example'].some((good) => text.address(path, origin)?.startsWith(good) ?? good === null),
    );
  assert.equal(text.address('/\\evil.example/x', origin), null);
});

test('links with a title and a path of the same origin are shown, others not', () => {
  const header =
    '</console>; rel="related"; title="Console", </docs>; rel="service-doc"; title="API reference", </x>; rel="icon", ' +
    '<https://evil.example/>; title="Far", <//evil.example/>; title="Far", </\\evil.example>; title="Far"';
  assert.deepEqual(text.linksOf(header), [
    { path: '/console', title: 'Console' },
    { path: '/docs', title: 'API reference' },
  ]);
  assert.deepEqual(text.linksOf(''), []);
});

test('routes are read back as they were written', () => {
  assert.deepEqual(text.parseRoute(text.routeOf('a-film', 12.7)), { id: 'a-film', seconds: 12 });
  assert.deepEqual(text.parseRoute(text.routeOf('a-film')), { id: 'a-film', seconds: 0 });
  for (const hash of ['', '#streams', '#/A', '#/a?t=x', '#/../a']) assert.equal(text.parseRoute(hash), null);
});

test('cues of a thumbnail track are found with their part of the picture', () => {
  const cues = text.parseThumbnails(
    'WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nthumbs-001.jpg#xywh=192,108,192,108\n',
    'https://m.example/media/a/thumbs.vtt',
  );
  const picture = 'https://m.example/media/a/thumbs-001.jpg';
  assert.deepEqual(cues, [{ from: 0, to: 1, picture, x: 192, y: 108, width: 192, height: 108 }]);
});

test('a title cannot break out of a snippet', () => {
  const stream = { title: '"><script>', progressive: { '720p': '/media/a.mp4' }, hls: null };
  const html = text.snippetsFor(stream, 'https://m.example').find(({ name }: { name: string }) => name === 'HTML');
  assert.ok(!html.text.includes('<script>'));
});

test('chapters are found, with what their titles mean', () => {
  const chapters = text.parseChapters(
    'WEBVTT\r\n\r\n00:00.000 --> 00:03.000\r\nCalm &amp; <i>still</i>\r\n\r\n00:03.000 --> 01:00:00.000\r\nStorm\r\n',
  );
  assert.deepEqual(chapters, [
    { from: 0, to: 3, title: 'Calm & still' },
    { from: 3, to: 3600, title: 'Storm' },
  ]);
  assert.deepEqual(
    [-1, 0, 2.99, 3, 9999].map((at) => text.chapterAt(chapters, at)),
    [-1, 0, 1, 1, 1],
  );
});

test('a card says what people ask for: how fine, in which languages; older documents say less', () => {
  const renditions = [
    { label: '180p', width: 320, height: 180 },
    { label: '720p', width: 1280, height: 720 },
  ];
  const old = { id: 'a', title: 'A', fps: 25, duration_s: 61, progressive: { '180p': '/media/a/180p.mp4' }, hls: null };
  assert.equal(text.cardFacts(old, renditions), '180p');
  assert.equal(text.cardFacts({ ...old, progressive: {}, hls: '/x' }, renditions), '');
  assert.equal(text.cardFacts({ ...old, language: 'de' }, renditions), '180p · Deutsch');
  const audio = ['en', 'es', 'fr', 'de', 'en'].map((language) => ({ language, name: language }));
  const captions = [
    { language: 'en', forced: true },
    { language: 'pt-BR', forced: false },
  ];
  const stream = { ...old, width: 608, height: 1080, audio, captions, bytes: { '180p': 12_345_678 } };
  assert.equal(text.cardFacts(stream, renditions), '608p · English, Español and 2 more · CC');
  assert.match(
    text.factsFor(stream, renditions),
    /^1:01 · 608p · .* · Captions: Português \(Brasil\) · 12\.3 MB as a file$/,
  );
  assert.equal(text.cardFacts({ ...old, language: 'not a tag!' }, renditions), '180p · Not a tag!');
});

test('sizes are written as people read them', () => {
  const sizes = [0, 999, 999_499, 999_500, 12_345_678, 123_456_789, 4.2e9].map(text.bytesText);
  assert.deepEqual(sizes, ['0 kB', '1 kB', '999 kB', '1 MB', '12.3 MB', '123 MB', '4.2 GB']);
});

test('a search finds words in any order, whatever their case and accents, and in no path', () => {
  const prepared = text.searchText({
    id: 'harbour',
    title: 'Über den Hafen',
    tags: ['Nebel'],
    hls: '/media/x/main.m3u8',
  });
  for (const query of ['uber', 'HAFEN über', 'nebel harb', '  ']) assert.ok(text.matcherOf(query)(prepared), query);
  for (const query of ['main.m3u8', 'hafen see']) assert.ok(!text.matcherOf(query)(prepared), query);
});
