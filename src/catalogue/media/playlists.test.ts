import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { FragmentedFile } from './fragments.ts';
import { audioSegments, bitRates, iframeSegments, totalSeconds, videoSegments } from './playlists.ts';

/** A track with fragments of these lengths, in ticks of a thousandth. */
function track(ticks: number[], size = 1000): FragmentedFile {
  const fragments = ticks.map((duration, i) => ({
    offset: 100 + i * size,
    size,
    start: ticks.slice(0, i).reduce((sum, each) => sum + each, 0),
    duration,
    sampleCount: 1,
    sampleBytes: null,
    dataBytes: 0,
    startsWithKey: true,
  }));
  return { initSize: 100, track: { timescale: 1000 } as FragmentedFile['track'], fragments };
}

const lengths = (segments: { seconds: number }[]) => segments.map(({ seconds }) => seconds);

test('three groups of two seconds make a segment', () => {
  const segments = videoSegments(track([2002, 2002, 2002, 2002, 2002, 2002, 500]));
  assert.deepEqual(lengths(segments), [6.006, 6.006, 0.5]);
  assert.deepEqual(segments[1], { offset: 3100, size: 3000, seconds: 6.006 });
});

test('sound is cut where the picture is, or up to a fragment before, and its tail is no segment of its own', () => {
  const video = videoSegments(track(Array(10).fill(2000)));
  const sound = audioSegments(track([...Array(19).fill(1003), 980]), video);
  assert.deepEqual(lengths(video), [6, 6, 6, 2]);
  const ends = sound.map((_, i) => totalSeconds(sound.slice(0, i + 1)));
  for (const [i, end] of ends.slice(0, -1).entries()) {
    const cut = totalSeconds(video.slice(0, i + 1));
    assert.ok(end <= cut + 0.02 && end > cut - 1.01, `${end} for ${cut}`);
  }
  assert.equal(sound.length, 4);
});

test('segments cover every fragment once, and none is longer than its target allows', () => {
  const ticks = fc.array(fc.integer({ min: 20, max: 2100 }), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(ticks, ticks, (video, audio) => {
      const pictures = videoSegments(track(video));
      for (const [segments, file] of [
        [pictures, track(video)],
        [audioSegments(track(audio), pictures), track(audio)],
      ] as const) {
        assert.equal(
          segments.reduce((sum, { size }) => sum + size, 0),
          file.fragments.length * 1000,
        );
        for (const { seconds } of segments) assert.ok(Math.round(seconds) <= 6);
      }
    }),
  );
});

test('the last I-frame lasts no longer than the video', () => {
  assert.deepEqual(lengths(iframeSegments(track([1000, 1000, 1000]), 2.4)), [1, 1, 0.3999999999999999]);
});

test('the peak is taken over neighbours of about the target duration, not over a short last segment', () => {
  const rates = bitRates([
    { size: 6000, seconds: 6 },
    { size: 12000, seconds: 6 },
    { size: 5000, seconds: 0.1 },
  ]);
  assert.equal(rates.peak, Math.ceil((17000 * 8) / 6.1));
  assert.equal(rates.average, Math.ceil((23000 * 8) / 12.1));
});
