import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseRate, framesSkipped, groupFrames, type Ratio, rateOf } from './timing.ts';

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
