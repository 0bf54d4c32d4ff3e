import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { chooseRate, chooseRungs, framesSkipped, groupFrames, type Ratio, rateOf, sizeIn } from './rungs.ts';

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

const every = (seconds: number) => Array.from({ length: 20 }, () => seconds);
const ratio = (num: number, den = 1): Ratio => ({ num, den });

for (const [what, declared, distances, expected] of [
  ['a declared rate that the frames bear out', ratio(30000, 1001), every(1001 / 30000), ratio(30000, 1001)],
  ['a declared rate without frames to compare', ratio(25), [], ratio(25)],
  ['a declared rate that is nonsense', ratio(90000), every(1 / 30), ratio(30)],
  ['no declared rate', null, every(0.04), ratio(25)],
  ['a variable rate near thirty', ratio(120), [0.033, 0.034, 0.033, 0.066, 0.033, 0.031], ratio(30)],
  ['an uncommon rate', ratio(1000), every(1 / 15), ratio(15)],
  ['a very fast one, halved', ratio(120), every(1 / 120), ratio(120, 2)],
  ['a slide show, made to move', ratio(1), every(1), ratio(5)],
  ['nothing known at all', null, [], ratio(25)],
] as const) {
  test(`the rate of a source with ${what}`, () => assert.deepEqual(chooseRate(declared, [...distances]), expected));
}

test('small rungs of fast sources show every second frame, others every one', () => {
  assert.equal(framesSkipped(ratio(60), 360), 2);
  assert.equal(framesSkipped(ratio(60), 720), 1);
  assert.equal(framesSkipped(ratio(30), 360), 1);
});

test('a group lasts about two seconds, and exactly as long in both families', () => {
  for (const rate of [ratio(60), ratio(60000, 1001), ratio(50), ratio(48), ratio(33), ratio(120, 2)]) {
    const full = groupFrames(rate, 1) / rateOf(rate);
    const half = (groupFrames(rate, 2) * 2) / rateOf(rate);
    assert.equal(full, half);
    assert.ok(Math.abs(full - 2) < 0.1, `${full}`);
  }
  assert.equal(groupFrames(ratio(25), 1), 50);
  assert.equal(groupFrames(ratio(24000, 1001), 1), 48);
});
