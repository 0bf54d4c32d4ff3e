import assert from 'node:assert/strict';
import { test } from 'node:test';
import { classOf, typeOf } from './header-rules.ts';

test('classes and types by path', () => {
  assert.deepEqual(
    ['health.txt', 'api/streams.json', 'media/SHA256SUMS', 'media/SHA256SUMS.br', 'index.html', 'media/a/1.mp4'].map(
      classOf,
    ),
    ['health', 'document', 'document', 'document', 'document', 'media'],
  );
  assert.equal(typeOf('media/SHA256SUMS'), 'text/plain; charset=utf-8');
  assert.equal(typeOf('media/a/hls/main.m3u8'), 'application/vnd.apple.mpegurl');
  assert.equal(typeOf('media/a/thing'), 'application/octet-stream');
});
