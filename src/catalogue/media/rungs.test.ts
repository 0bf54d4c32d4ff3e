import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { chooseRungs, sizeIn } from './rungs.ts';

const rendition = (height: number) => ({
  label: `${height}p`,
  width: Math.round((height * 16) / 9 / 2) * 2,
  height,
  video_kbps: height,
  audio_kbps: 96,
});
const ladder = [rendition(1080), rendition(360), rendition(720)];
const labels = (width: number, height: number) =>
  chooseRungs({ width, height }, ladder).rungs.map(
    ({ rendition: { label }, width, height }) => `${label} ${width}x${height}`,
  );

test('a source fills every rung that is not larger than itself, smallest first', () => {
  assert.deepEqual(labels(1920, 1080), ['360p 640x360', '720p 1280x720', '1080p 1920x1080']);
  assert.deepEqual(labels(1280, 720), ['360p 640x360', '720p 1280x720']);
});

test('a wide film keeps its shape', () => {
  assert.deepEqual(labels(1920, 800), ['360p 640x266', '720p 1280x534', '1080p 1920x800']);
});

test('an upright source fills the rungs upright', () => {
  assert.deepEqual(labels(1080, 1920), ['360p 360x640', '720p 720x1280', '1080p 1080x1920']);
});

test('a few pixels short still counts, at the source’s own size', () => {
  assert.deepEqual(labels(1918, 1078).at(-1), '1080p 1918x1078');
});

test('a source smaller than every rung is made once, at its own size', () => {
  assert.deepEqual(labels(161, 91), ['360p 160x90']);
  assert.deepEqual(chooseRungs({ width: 161, height: 91 }, ladder).leftOut, ['720p', '1080p']);
});

test('no size is ever odd, larger than the source or larger than the rung', () => {
  fc.assert(
    fc.property(fc.integer({ min: 32, max: 4000 }), fc.integer({ min: 32, max: 4000 }), (width, height) => {
      for (const each of ladder) {
        const size = sizeIn({ width, height }, each);
        assert.equal((size.width % 2) + (size.height % 2), 0);
        assert.ok(size.width <= Math.max(16, width) && size.height <= Math.max(16, height));
        assert.ok(Math.max(size.width, size.height) <= each.width + 1);
      }
    }),
  );
});
