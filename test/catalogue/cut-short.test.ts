// A publish that stops at any of its steps: readers see the old catalogue or the new one, never a compressed form of
// another text; and any later build puts right what is missing, one with nothing to do included.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { cpSync, existsSync, linkSync, mkdirSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { onPath } from '../../scripts/packages.ts';
import { listFiles } from '../../src/catalogue/files.ts';
import { type SitePaths, sitePathsOf } from '../../src/catalogue/site-paths.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import { StepFailed, withFault } from './faulty-fs.ts';
import { cliPath, makeSource, runCatalogue, sharedSite, type TestBuild, writeManifest } from './fixture.ts';

const execute = promisify(execFile);
const stream = (id: string, title = id) =>
  `{ id: ${id}, title: ${title}, source: ${id === 'b' ? 'two' : 'one'}.mp4, progressive: [36p], hls: no }`;

/** A site with three streams, so that its texts are long enough for compressed forms. */
const publish = sharedSite(async (build) => {
  await makeSource(build.folder, 'one.mp4');
  await makeSource(build.folder, 'two.mp4', { hue: 90 });
  await writeManifest(build.folder, [stream('a'), stream('c'), stream('d')]);
  await build.build();
});

/** Every text that a publish replaces, as readers get it: plain, and unpacked from each form that is there. */
async function readAsServed(site: string): Promise<Map<string, Set<string>>> {
  const texts = new Map<string, Set<string>>();
  for (const path of await listFiles(site)) {
    if (!/^(media\/SHA256SUMS|api\/|health|index)/.test(path)) continue;
    const bytes = await readFile(join(site, path));
    const plain = path.endsWith('.br') ? brotliDecompressSync(bytes) : path.endsWith('.gz') ? gunzipSync(bytes) : bytes;
    const name = path.replace(/\.(br|gz)$/, '');
    texts.set(name, (texts.get(name) ?? new Set()).add(plain.toString('latin1')));
  }
  return texts;
}

async function assertNoStaleForm({ site }: SitePaths, point: string): Promise<void> {
  for (const [name, versions] of await readAsServed(site))
    assert.equal(versions.size, 1, `${name} has a form of another text after ${point}`);
}

for (const [kind, every, stride] of [
  ['killed', 'every step', 1],
  ['disk full', 'every third step', 3],
] as const) {
  test(`${kind} at ${every} of a publish: no stale form, and the next build finishes`, async (t) => {
    const build = await publish(t);
    const kept = { site: join(build.folder, 'kept'), state: join(build.folder, 'kept.state') };
    await writeManifest(build.folder, [stream('a', 'another title'), stream('c'), stream('d'), stream('b')]);
    // Stages b and publishes nothing, so that each round below begins with the publish.
    await withFault({ atStep: 1e9, kind }, () => build.build({ signal: abortAt(build, 'finish') }));
    await restore(build.paths, kept);
    let rounds = 0;
    for (let atStep = 1; ; atStep += stride) {
      await restore(kept, build.paths);
      const { error } = await withFault({ atStep, kind }, () => build.build());
      if (error === null) break;
      assert.ok(error instanceof StepFailed, String(error));
      await assertNoStaleForm(build.paths, `step ${atStep}`);
      rounds++;
      if (rounds % 6 !== 0) continue;
      assert.deepEqual((await verifySite({ paths: build.paths })).faults, [], `step ${atStep}`);
      const { document } = await build.build();
      assert.equal(document.streams.length, 4);
      const { faults, notes } = await verifySite({ paths: build.paths });
      assert.deepEqual([...faults, ...notes], [], `after step ${atStep} and another build`);
    }
    assert.ok(rounds >= 15, `${rounds} rounds`);
  });
}

/** Files of a site are only ever replaced, so links are as good as copies; a ledger grows in its place. */
async function restore(from: Pick<SitePaths, 'site' | 'state'>, to: Pick<SitePaths, 'site' | 'state'>): Promise<void> {
  await rm(to.site, { recursive: true, force: true });
  await rm(to.state, { recursive: true, force: true });
  for (const path of await listFiles(from.site)) {
    mkdirSync(dirname(join(to.site, path)), { recursive: true });
    linkSync(join(from.site, path), join(to.site, path));
  }
  cpSync(from.state, to.state, { recursive: true });
}

function abortAt(build: TestBuild, kind: string): AbortSignal {
  const controller = new AbortController();
  const push = build.events.push.bind(build.events);
  build.events.push = (...events) => {
    if (events.some((event) => event.kind === kind)) controller.abort();
    return push(...events);
  };
  return controller.signal;
}

test('a build with nothing to do replaces stale forms and writes missing ones', async (t) => {
  const build = await publish(t);
  const at = (path: string) => join(build.paths.site, path);
  await writeFile(at('api/streams.json.gz'), gzipSync('{"version":2}'));
  await writeFile(at('media/SHA256SUMS.br'), brotliCompressSync('old'));
  await writeFile(at('gallery/gallery.js.gz'), 'not gzip at all');
  await rm(at('index.html.br'));
  // Too small for verify to miss its forms, and mended all the same.
  await rm(at('gallery/icon.svg.gz'));
  const plain = await readFile(at('api/streams.json'));
  assert.equal((await verifySite({ paths: build.paths })).faults.length, 4);
  assert.deepEqual((await build.build()).encoded, []);
  assert.ok((await readFile(at('api/streams.json'))).equals(plain));
  const { faults, notes } = await verifySite({ paths: build.paths });
  assert.deepEqual([...faults, ...notes], []);
});

test('what an interrupted publish left under an id that now gets other files is removed', async (t) => {
  const build = await publish(t);
  const left = join(build.paths.site, 'media/b/hls/old.m3u8.gz');
  await mkdir(dirname(left), { recursive: true });
  await writeFile(left, 'x');
  const streams = ['a', 'c', 'd', 'b'].map((id) => stream(id));
  await writeManifest(build.folder, streams);
  await build.build();
  assert.ok(!existsSync(left));
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
});

const noStrace = onPath('strace') ? false : 'strace is not installed';

test('SIGKILL between two system calls of a publish, by strace', { skip: noStrace }, async (t) => {
  const build = await publish(t);
  let kills = 0;
  for (const when of [1, 2, 3, 4]) {
    const manifest = await writeManifest(build.folder, [stream('a', `title ${when}`), stream('c'), stream('d')]);
    const inject = `inject=rename:signal=KILL:when=${when}`;
    // Not with --seccomp-bpf: strace then ends no call after the first.
    const words = ['-f', '-qq', '-o', '/dev/null', '-e', 'trace=rename', '-e', inject];
    // With one thread for files its calls are counted together.
    const env = { ...process.env, UV_THREADPOOL_SIZE: '1' };
    const args = [...words, process.execPath, cliPath, 'catalogue', 'build', manifest, '--dir', build.paths.site];
    const traced = spawn('strace', args, { stdio: 'ignore', env });
    const [code, signal] = await new Promise<unknown[]>((resolve) => traced.on('close', (...how) => resolve(how)));
    if (signal === 'SIGKILL' || code === 137) kills++;
    else assert.equal(code, 0);
    await assertNoStaleForm(build.paths, `rename ${when}`);
    assert.deepEqual((await verifySite({ paths: build.paths })).faults, [], `rename ${when}`);
  }
  assert.ok(kills >= 3, `${kills} kills`);
  await build.build();
  assert.match(await readFile(join(build.paths.site, 'api/streams.json'), 'utf8'), /title 4/);
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
});

const noMount = process.getuid?.() === 0 ? false : 'only root can mount a file system';

test('a full disk while publishing: one line, and readers get what they got before', { skip: noMount }, async (t) => {
  const build = await publish(t);
  const disk = await mountDisk(t, '3m');
  const paths = sitePathsOf(join(disk, 'site'));
  await cp(build.paths.site, paths.site, { recursive: true });
  await cp(build.paths.state, paths.state, { recursive: true });
  // Its document does not fit into what the old forms leave when they go.
  const longer = stream('a').replace('hls: no', `hls: no, fields: { notes: ${'x'.repeat(50_000)} }`);
  const manifest = await writeManifest(build.folder, [longer, stream('c'), stream('d')]);
  await execute('dd', ['if=/dev/zero', `of=${join(disk, 'filler')}`, 'bs=4k']).catch(() => {});
  const before = await readAsServed(paths.site);
  const full = await runCatalogue(['build', manifest, '--dir', paths.site]);
  assert.equal(full.code, 1);
  assert.equal(
    full.stderr,
    'sluice catalogue: the disk is full; what is published is whole, and the next build goes on\n',
  );
  assert.deepEqual(await readAsServed(paths.site), before);
  await rm(join(disk, 'filler'));
  assert.equal((await runCatalogue(['build', manifest, '--dir', paths.site])).code, 0);
  const { faults, notes } = await verifySite({ paths });
  assert.deepEqual([...faults, ...notes], []);
});

test('a site on another file system than its state: one line, before anything is encoded', {
  skip: noMount,
}, async (t) => {
  const build = await publish(t);
  const elsewhere = join(await mountDisk(t, '16m'), 'site');
  await rename(build.paths.site, `${build.paths.site}.old`);
  await cp(`${build.paths.site}.old`, elsewhere, { recursive: true });
  await symlink(elsewhere, build.paths.site);
  const manifest = await writeManifest(
    build.folder,
    ['a', 'c', 'd', 'b'].map((id) => stream(id)),
  );
  const refused = await runCatalogue(['build', manifest, '--dir', build.paths.site]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /^sluice catalogue: \S+\/media and \S+\/work are on different file systems; .*\n$/);
  assert.doesNotMatch(refused.stdout, /encoding/);
  assert.ok(!existsSync(join(elsewhere, 'media/b')));
});

/** A file system of its own; gives the folder it is mounted on. */
async function mountDisk(t: TestContext, size: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-disk-'));
  await execute('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder]);
  t.after(async () => {
    await execute('umount', ['-l', folder]);
    await rm(folder, { recursive: true });
  });
  return folder;
}
