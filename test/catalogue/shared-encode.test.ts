// Streams that share a source: each is published whole, and what is the same is encoded once.
import assert from 'node:assert/strict';
import { copyFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import { makeBuild, makeSource, writeManifest } from './fixture.ts';

test('two streams of the same source, built side by side, are encoded once and published under both ids', async (t) => {
  const build = await makeBuild(t);
  const source = await makeSource(build.folder, 'a.mp4');
  await copyFile(source, join(build.folder, 'copy.mp4'));
  await writeManifest(build.folder, [
    '{ id: a, title: A, source: a.mp4, progressive: [36p] }',
    '{ id: b, title: B, source: copy.mp4, progressive: [36p] }',
    '{ id: c, title: C, source: a.mp4, progressive: [36p], hls: no }',
  ]);
  const { encoded } = await build.build({ jobs: 3 });
  assert.deepEqual(encoded, ['a', 'b', 'c']);
  assert.deepEqual((await verifySite({ paths: build.paths, decoder: build.encoder })).faults, []);
  const inode = async (id: string) => (await stat(join(build.paths.site, `media/${id}/36p.mp4`))).ino;
  assert.equal(await inode('a'), await inode('b'));
  assert.notEqual(await inode('a'), await inode('c'));
  const finished = build.events.flatMap((event) => (event.kind === 'finish' ? [event.id] : []));
  assert.deepEqual(finished.sort(), ['a', 'b', 'c']);
});
