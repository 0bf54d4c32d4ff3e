import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LatestFrames } from './latest-frames.ts';

function frame(text: string): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt32BE(text.length, 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

test('of a long log the latest frames that fit are kept, however it is cut into chunks', () => {
  const log = Buffer.concat(Array.from({ length: 100 }, (_, n) => frame(String(n).padStart(92, '.'))));
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
