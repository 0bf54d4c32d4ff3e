import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { test } from 'node:test';
import { ChunkGatherer } from './chunk-gatherer.ts';

async function readAll(gathering: ChunkGatherer): Promise<string[]> {
  const pieces: string[] = [];
  for (;;) {
    const data = await gathering.next();
    if (data === 'end') return pieces;
    pieces.push(data.toString());
  }
}

test('many small chunks are few pieces, with every byte in its order', async () => {
  const chunks = Array.from({ length: 50_000 }, (_, n) => Buffer.from(`line ${n}\n`));
  const pieces = await readAll(new ChunkGatherer(Readable.from(chunks, { objectMode: false })));
  assert.equal(pieces.join(''), Buffer.concat(chunks).toString());
  assert.ok(pieces.length < 1000, `${pieces.length} pieces`);
});

test('what comes after a silence comes at once; silence is told only to those who ask', async () => {
  const stream = new PassThrough();
  const gathering = new ChunkGatherer(stream);
  assert.equal(await gathering.next(5), 'quiet');
  const first = gathering.next();
  stream.write('first');
  assert.equal(String(await first), 'first');
  stream.end('second');
  assert.equal(String(await gathering.next()), 'second');
  assert.equal(await gathering.next(), 'end');
});

test('a stream that nobody takes from is held up, and one that breaks off fails behind what it gave', async () => {
  const stream = new PassThrough({ highWaterMark: 1024 });
  const gathering = new ChunkGatherer(stream);
  let written = 0;
  while (stream.write(Buffer.alloc(1024))) {
    written += 1024;
    await new Promise(setImmediate);
  }
  assert.ok(written < 256 * 1024, `${written} bytes`);
  assert.ok((await gathering.next()).length >= 128 * 1024);
  stream.destroy(new Error('cut'));
  await assert.rejects(async () => {
    for (;;) await gathering.next();
  }, /cut/);
});
