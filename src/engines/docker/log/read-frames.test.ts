import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLogFrames } from './read-frames.ts';

function frame(stream: 1 | 2, text: string): Buffer {
  const payload = Buffer.from(text);
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
}

const at = Date.parse('2026-01-02T03:04:05.678Z');
const time = '2026-01-02T03:04:05.678901234Z';

test('frames become lines with their stream and time', () => {
  const data = Buffer.concat([frame(1, `${time} one two\n`), frame(2, `${time} \u00e9\r\n`), frame(1, `${time} \n`)]);
  assert.deepEqual(readLogFrames(data), [
    { at, stream: 'stdout', text: 'one two' },
    { at, stream: 'stderr', text: '\u00e9' },
    { at, stream: 'stdout', text: '' },
  ]);
});

test('a line in several frames is one line, also with another stream in between', () => {
  const parts = [
    frame(1, `${time} aa`),
    frame(2, `${time} warning\n`),
    frame(1, `${time} bb`),
    frame(1, `${time} c\n`),
  ];
  const lines = readLogFrames(Buffer.concat([...parts, frame(1, `${time} next\n`)]));
  assert.deepEqual(
    lines.map(({ text }) => text),
    ['aabbc', 'warning', 'next'],
  );
});

test('several lines in one frame, and an answer cut short', () => {
  const data = Buffer.concat([frame(1, `${time} a\n${time} b\n`), Buffer.from([1, 0, 0])]);
  assert.deepEqual(
    readLogFrames(data).map(({ text }) => text),
    ['a', 'b'],
  );
  assert.deepEqual(readLogFrames(Buffer.alloc(0)), []);
});
