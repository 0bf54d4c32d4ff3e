import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLine } from './pod-log.ts';

// As nodes write them: with all nanoseconds, without zeros at the end, in their own time zone.
const lines: [raw: string, time: string, text: string][] = [
  ['2026-11-15T21:00:00.123456789Z hello', '2026-11-15T21:00:00.123456789Z', 'hello'],
  ['2026-11-15T21:00:00.5Z a b ', '2026-11-15T21:00:00.500000000Z', 'a b '],
  ['2026-11-15T21:00:00Z ', '2026-11-15T21:00:00.000000000Z', ''],
  ['2026-11-15T23:00:00.123456789+02:00 zone\r', '2026-11-15T21:00:00.123456789Z', 'zone'],
  ['2026-11-15T16:00:00.000000001-05:00 zone', '2026-11-15T21:00:00.000000001Z', 'zone'],
];

for (const [raw, time, text] of lines) {
  test(`${JSON.stringify(raw)} is read`, () => {
    const line = readLine(raw)!;
    assert.deepEqual([line.time, line.text], [time, text]);
    assert.equal(line.ms, Date.parse(time));
  });
}

test('what has no time is no line of a program', () => {
  assert.equal(readLine('unable to retrieve container logs for containerd://1'), null);
});
