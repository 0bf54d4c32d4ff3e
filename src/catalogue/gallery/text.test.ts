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
