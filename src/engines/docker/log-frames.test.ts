import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FrameLines, LatestFrames, readLogFrames } from './log-frames.ts';

function frame(stream: 1 | 2, text: string): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

const time = '2026-11-15T21:41:07.123456789Z';
const at = Date.parse('2026-11-15T21:41:07.123Z');

test('whole lines of both streams, in chunks of any size', () => {
  const data = Buffer.concat([frame(1, `${time} one\n`), frame(2, `${time} two\n`), frame(1, `${time} \n`)]);
  const expected = `o${time} one\ne${time} two\no${time} \n`;
  for (const size of [1, 7, 40, data.length]) {
    const lines = new FrameLines();
    let out = '';
    const copy = Buffer.from(data);
    for (let at = 0; at < copy.length; at += size) out += lines.add(Buffer.from(copy.subarray(at, at + size)));
    assert.equal(out, expected, `in chunks of ${size}`);
  }
});

test('a line in several frames is one line in pieces, with the time of its first', () => {
  const lines = new FrameLines();
  const later = time.replace(':07.', ':08.');
  const [half, rest] = ['a'.repeat(16_384), 'b'.repeat(10)];
  const out = [frame(1, `${time} ${half}`), frame(2, `${later} other\n`), frame(1, `${later} ${rest}\n`)].map((data) =>
    lines.add(data).toString(),
  );
  assert.deepEqual(out, [`o${time} ${half}\n`, `e${later} other\n`, `O${time} ${rest}\n`]);
  assert.equal(lines.add(frame(1, `${later} next\n`)).toString(), `o${later} next\n`);
});

test('times as Podman writes them', () => {
  const lines = new FrameLines();
  const out = lines.add(frame(1, '2026-11-15T22:41:07.1+01:00 there\n')).toString();
  assert.equal(out, 'o2026-11-15T21:41:07.100000000Z there\n');
});

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

test('of a long log the latest frames that fit are kept, however it is cut into chunks', () => {
  const log = Buffer.concat(Array.from({ length: 100 }, (_, n) => frame(1, String(n).padStart(92, '.'))));
  for (const chunkBytes of [1, 7, 100, 333, log.length]) {
    const latest = new LatestFrames(450);
    for (let at = 0; at < log.length; at += chunkBytes) latest.add(log.subarray(at, at + chunkBytes));
    assert.deepEqual(latest.bytes(), log.subarray(-400), `chunks of ${chunkBytes}`);
  }
});

test('a frame of a size that Docker never sends ends the read', () => {
  const header = Buffer.alloc(8);
  header.writeUInt32BE(0x7fff_ffff, 4);
  assert.throws(() => new LatestFrames(1000).add(header), { fault: 'unavailable' });
});
