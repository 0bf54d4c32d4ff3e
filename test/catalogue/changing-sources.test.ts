// A source that changes while a build is at work is published as what it was when its digest was taken, or not at all.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { BuildEvent } from '../../src/catalogue/build.ts';
import { cliPath, execute, makeBuild, makeSource, type TestBuild, writeManifest } from './fixture.ts';

const streams = ['a', 'b'].map((id) => `{ id: ${id}, title: ${id}, source: ${id}.mp4, progressive: [36p], hls: no }`);

const sha256 = async (path: string) =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex');

async function ledgerDigest(build: TestBuild, id: string): Promise<string> {
  const lines = (await readFile(build.paths.ledger, 'utf8')).trim().split('\n');
  return lines.map((line) => JSON.parse(line)).find((line) => line.id === id).source_sha256;
}

/** Runs something at the first event of a kind. */
function once(build: TestBuild, kind: BuildEvent['kind'], act: () => void): void {
  const push = build.events.push.bind(build.events);
  let done = false;
  build.events.push = (event) => {
    if (!done && event.kind === kind) {
      done = true;
      act();
    }
    return push(event);
  };
}

test('a file replaced while it waits in the queue is refused in one line, and the next build is right', async (t) => {
  const build = await makeBuild(t);
  await makeSource(build.folder, 'a.mp4');
  await makeSource(build.folder, 'b.mp4', { hue: 45 });
  const other = await makeSource(build.folder, 'other.mp4', { hue: 90 });
  await writeManifest(build.folder, streams);
  once(build, 'start', () => renameSync(other, join(build.folder, 'b.mp4')));
  const { failed, encoded } = await build.build();
  assert.deepEqual(failed, [{ ids: ['b'], reasons: ['b.mp4 was changed while the build read it; build again'] }]);
  assert.deepEqual(encoded, ['a']);
  await build.build();
  assert.equal(await ledgerDigest(build, 'b'), await sha256(join(build.folder, 'b.mp4')));
  assert.deepEqual((await build.build()).encoded, []);
});

test('a file replaced while it is encoded is published as what it was', async (t) => {
  const build = await makeBuild(t);
  const source = await makeSource(build.folder, 'a.mp4', { seconds: 2 });
  const [digest, other] = [await sha256(source), await makeSource(build.folder, 'other.mp4', { hue: 90 })];
  await writeManifest(build.folder, streams.slice(0, 1));
  once(build, 'progress', () => renameSync(other, source));
  await build.build();
  assert.equal(await ledgerDigest(build, 'a'), digest);
  assert.notEqual(await sha256(source), digest);
});

test('a file written to while it is encoded is refused, even where its length and times stay', async (t) => {
  const build = await makeBuild(t);
  const source = await makeSource(build.folder, 'a.mp4', { seconds: 2 });
  await writeManifest(build.folder, streams.slice(0, 1));
  const bytes = await readFile(source);
  bytes[bytes.length - 1]! ^= 1;
  once(build, 'progress', () => writeFileSync(source, bytes, { flag: 'r+' }));
  await assert.rejects(
    build.build(),
    /^CatalogueError: stream a: .*a\.mp4 was changed while the build read it; build again$/,
  );
  assert.ok(!existsSync(join(build.paths.site, 'api/streams.json')));
});

test('reads that fail while a source is digested end the build in one line', async (t) => {
  const build = await makeBuild(t);
  await makeSource(build.folder, 'a.mp4');
  const manifest = await writeManifest(build.folder, streams.slice(0, 1));
  const source = join(build.folder, 'a.mp4');
  const traced = ['--seccomp-bpf', '-f', '-qq', '-o', '/dev/null', '-P', source, '-e', 'trace=pread64,read'];
  const inject = [...traced, '-e', 'inject=pread64,read:error=EIO:when=1+'];
  const command = [process.execPath, cliPath, 'catalogue', 'build', manifest, '--dir', build.paths.site];
  const failed = await execute('strace', [...inject, ...command]).catch((error) => error);
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /^sluice catalogue: EIO: i\/o error, read\n$/);
});

test('half an upload is waited for, and the whole of it is published', async (t) => {
  const build = await makeBuild(t);
  const whole = await readFile(await makeSource(build.folder, 'whole.mp4'));
  const source = join(build.folder, 'a.mp4');
  writeFileSync(source, whole.subarray(0, 1000));
  await writeManifest(build.folder, streams.slice(0, 1));
  once(build, 'note', () => writeFileSync(source, whole.subarray(1000), { flag: 'a' }));
  await build.build({ patience: { quietMs: 1000, longestMs: 30_000 } });
  const notes = build.events.flatMap((event) => (event.kind === 'note' ? [event.text] : []));
  assert.deepEqual(notes, ['a: a.mp4 was written to a moment ago; waiting until it is complete']);
  assert.equal(await ledgerDigest(build, 'a'), await sha256(join(build.folder, 'whole.mp4')));
});

test('a file that never keeps still is refused after a while', async (t) => {
  const build = await makeBuild(t);
  const file = await open(join(build.folder, 'a.mp4'), 'w');
  await writeManifest(build.folder, streams.slice(0, 1));
  const upload = setInterval(() => file.write('more'), 20);
  t.after(async () => {
    clearInterval(upload);
    await file.close();
  });
  await assert.rejects(
    build.build({ patience: { quietMs: 1000, longestMs: 1500 } }),
    /a\.mp4 is still being written; build again when it is complete/,
  );
});

test('a file that was moved into place is not waited for', async (t) => {
  const build = await makeBuild(t);
  const source = await makeSource(build.folder, 'upload.mp4');
  await rename(source, join(build.folder, 'a.mp4'));
  await writeManifest(build.folder, streams.slice(0, 1));
  await build.build({ patience: { quietMs: 30_000, longestMs: 0 } });
  assert.deepEqual(
    build.events.filter((event) => event.kind === 'note'),
    [],
  );
});
