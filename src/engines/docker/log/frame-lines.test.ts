import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FrameLines } from './frame-lines.ts';

function frame(stream: 1 | 2, text: string): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

const time = '2026-11-15T21:41:07.123456789Z';

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
