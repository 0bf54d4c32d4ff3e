// Ids are for ever, publishes are atomic, and whatever goes wrong leaves the published site as it was.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { hashFile, listFiles } from '../../src/catalogue/files.ts';
import { streamsIfUnchanged } from '../../src/catalogue/last-build.ts';
import { withdrawStream } from '../../src/catalogue/publish.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import { until } from '../helpers/wait.ts';
import {
  makeBuild,
  makeSlowEncoder,
  makeSource,
  runCatalogue,
  sharedSite,
  startCatalogue,
  systemFfmpeg,
  type TestBuild,
  tinyRenditions,
  writeManifest,
} from './fixture.ts';

const stream = (id: string, source: string, rest = 'progressive: [36p], hls: no') =>
  `{ id: ${id}, title: Stream ${id}, source: ${source}, ${rest} }`;

const publishOne = sharedSite(async (build) => {
  // Nothing at all is there before a first publish.
  await rm(build.paths.site, { recursive: true });
  await makeSource(build.folder, 'one.mp4');
  await makeSource(build.folder, 'two.mp4', { hue: 90 });
  await writeManifest(build.folder, [stream('a', 'one.mp4')]);
  await build.build({ now: new Date('2026-03-01T10:00:00Z') });
});

/** Digest of every file of the site. */
async function fingerprint({ paths }: TestBuild): Promise<Record<string, string>> {
  const names = await listFiles(paths.site);
  const digests = await Promise.all(names.map(async (name) => [name, (await hashFile(join(paths.site, name))).sha256]));
  return Object.fromEntries(digests) as Record<string, string>;
}

const touch = (path: string) => utimes(path, 1, 1);

async function refuses(build: TestBuild, manifest: string[], told: RegExp, renditions?: string): Promise<void> {
  const before = await fingerprint(build);
  await writeManifest(build.folder, manifest, renditions);
  await assert.rejects(build.build({ strict: true }), told);
  assert.deepEqual(await fingerprint(build), before);
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
}

test('a first publish holds every file the contract names', async (t) => {
  const build = await publishOne(t);
  const site = build.paths.site;
  assert.equal(await readFile(join(site, 'health.txt'), 'latin1'), 'ok\n');
  const document = JSON.parse(await readFile(join(site, 'api/streams.json'), 'utf8'));
  assert.equal(document.version, 2);
  assert.equal(document.updated, '2026-03-01');
  assert.deepEqual(document.streams[0].progressive, { '36p': '/media/a/36p.mp4' });
  assert.equal(document.streams[0].hls, null);
  for (const path of ['index.html', 'media/SHA256SUMS', 'gallery/hls.min.js', 'media/a/poster.jpg'])
    assert.ok(existsSync(join(site, path)), path);
  assert.ok(!existsSync(join(site, 'ledger.jsonl')));
});

test('what is published under an id cannot become something else', async (t) => {
  const build = await publishOne(t);
  await refuses(build, [stream('a', 'two.mp4')], /published from another source/);
  await refuses(build, [], /withdraw it with/);
  await refuses(build, [stream('a', 'one.mp4', 'progressive: [90p], hls: no')], /cannot be taken away/);
  const other = 'renditions:\n  - { label: 36p, width: 64, height: 36, video_kbps: 101, audio_kbps: 32 }\n';
  await refuses(build, [stream('a', 'one.mp4')], /other numbers/, other);
});

test('nothing to do touches nothing, and a new title only the document', async (t) => {
  const build = await publishOne(t);
  const before = await fingerprint(build);
  build.events.length = 0;
  await build.build({ now: new Date('2026-04-01T10:00:00Z') });
  assert.deepEqual(await fingerprint(build), before);
  assert.ok(!build.events.some(({ kind }) => kind === 'start'));
  await writeManifest(build.folder, [stream('a', 'one.mp4').replace('Stream a', 'Another title')]);
  const { document } = await build.build({ now: new Date('2026-04-01T10:00:00Z') });
  const after = await fingerprint(build);
  const changed = Object.keys(after).filter((name) => after[name] !== before[name]);
  assert.deepEqual(changed, ['api/streams.json', 'api/streams.json.br', 'api/streams.json.gz']);
  assert.equal(document.updated, '2026-04-01');
});

test('a build that had nothing to do is remembered until anything it looked at changes', async (t) => {
  const build = await publishOne(t);
  const { site, ledger } = build.paths;
  const manifest = join(build.folder, 'catalogue.yaml');
  const later = () => new Date(Date.now() + 60_000);
  const isRemembered = () => streamsIfUnchanged(build.paths, manifest) !== null;
  await build.build();
  assert.ok(!isRemembered(), 'files that have just changed are looked at again');
  await build.build({ now: later() });
  assert.equal(streamsIfUnchanged(build.paths, manifest), 1);
  assert.ok(!streamsIfUnchanged(build.paths, join(build.folder, 'other.yaml')));
  const film = join(site, 'media/a/36p.mp4');
  const changes: [what: string, path: string, change: (path: string) => Promise<unknown>][] = [
    ['a manifest that was touched', manifest, touch],
    ['a source that was touched', join(build.folder, 'one.mp4'), touch],
    ['a ledger that was touched', ledger, touch],
    ['a document that was touched', join(site, 'api/streams.json'), touch],
    ['a form that is gone', join(site, 'media/SHA256SUMS.br'), (path) => rm(path)],
    ['media that is gone', film, (path) => rm(path)],
    ['media that was cut off', film, (path) => truncate(path, 10)],
    ['a source that is gone', join(build.folder, 'one.mp4'), (path) => rm(path)],
  ];
  for (const [what, path, change] of changes) {
    await build.build({ now: later() });
    assert.ok(isRemembered(), `before ${what}`);
    const bytes = await readFile(path);
    await change(path);
    assert.ok(!isRemembered(), what);
    await writeFile(path, bytes);
  }
});

test('a published stream can gain renditions and HLS; what it had stays byte for byte', async (t) => {
  const build = await publishOne(t);
  const before = await fingerprint(build);
  await makeSource(build.folder, 'large.mp4', { size: '160x90', hue: 200 });
  await writeManifest(build.folder, [stream('a', 'one.mp4', 'progressive: [36p], hls: yes'), stream('b', 'large.mp4')]);
  const { document } = await build.build();
  assert.equal(document.streams[0]!.hls, '/media/a/hls/main.m3u8');
  const after = await fingerprint(build);
  for (const name of Object.keys(before).filter((each) => each.startsWith('media/a/')))
    assert.equal(after[name], before[name]);
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
});

test('an addition that is larger than the source is left out for good, not made at another size', async (t) => {
  const build = await publishOne(t);
  const before = await fingerprint(build);
  await writeManifest(build.folder, [stream('a', 'one.mp4', 'progressive: [36p, 90p], hls: no')]);
  const { document } = await build.build();
  assert.deepEqual(Object.keys(document.streams[0]!.progressive), ['36p']);
  assert.deepEqual(await fingerprint(build), before);
  assert.deepEqual((await build.build()).encoded, []);
});

test('a large rung added to a small one tells the full frame rate', async (t) => {
  const build = await makeBuild(t);
  await makeSource(build.folder, 'fast.mp4', { size: '480x480', rate: '50', seconds: 0.4 });
  const renditions = `${tinyRenditions}  - { label: 480p, width: 480, height: 480, video_kbps: 500, audio_kbps: 48 }\n`;
  await writeManifest(build.folder, [stream('a', 'fast.mp4')], renditions);
  assert.equal((await build.build()).document.streams[0]!.fps, 25);
  await writeManifest(build.folder, [stream('a', 'fast.mp4', 'progressive: [36p, 480p], hls: yes')], renditions);
  assert.equal((await build.build()).document.streams[0]!.fps, 50);
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
});

test('a withdrawal outlives the ledger: an older one restored beside the site does not bring the id back', async (t) => {
  const build = await publishOne(t);
  const { paths } = build;
  const older = await readFile(paths.ledger);
  await withdrawStream({ paths, id: 'a', purge: true, now: () => new Date() });
  await writeFile(paths.ledger, older);
  await refuses(build, [stream('a', 'one.mp4')], /this id was withdrawn and cannot be used again/);
  // Not even with a ledger that never heard of it.
  await writeFile(paths.ledger, '');
  await refuses(build, [stream('a', 'two.mp4')], /this id was withdrawn and cannot be used again/);
  await writeFile(paths.ledger, older);
  assert.match((await verifySite({ paths })).notes.join(), /stream a: was withdrawn, and the ledger has forgotten it/);
  await writeManifest(build.folder, [stream('b', 'two.mp4')]);
  await build.build();
  assert.match(await readFile(paths.ledger, 'utf8'), /"type":"purge".*"id":"a"/);
  const { notes, faults } = await verifySite({ paths });
  assert.deepEqual([...notes, ...faults], []);
});

test('a site from before withdrawals were kept in it gets them with the next stream that is published', async (t) => {
  const build = await publishOne(t);
  const { paths } = build;
  await withdrawStream({ paths, id: 'a', purge: false, now: () => new Date() });
  const kept = join(paths.site, 'api/withdrawn.json');
  const told = await readFile(kept, 'utf8');
  for (const suffix of ['', '.br', '.gz']) await rm(kept + suffix, { force: true });
  await writeManifest(build.folder, []);
  await build.build();
  assert.ok(!existsSync(kept), 'a build with nothing new changes nothing');
  await writeManifest(build.folder, [stream('b', 'two.mp4')]);
  await build.build();
  assert.equal(await readFile(kept, 'utf8'), told);
});

test('the day of the document never goes back, although a clock does', async (t) => {
  const build = await publishOne(t);
  await writeManifest(build.folder, [stream('a', 'one.mp4'), stream('b', 'two.mp4')]);
  const { document } = await build.build({ now: new Date('2025-01-01T00:00:00Z') });
  assert.equal(document.updated, '2026-03-01');
});

test('a withdrawn id leaves the document, keeps its files until purged, and never returns', async (t) => {
  const build = await publishOne(t);
  await writeManifest(build.folder, [stream('a', 'one.mp4'), stream('b', 'two.mp4')]);
  await build.build();
  const { paths } = build;
  await withdrawStream({ paths, id: 'a', purge: false, now: () => new Date() });
  const document = () => readFile(join(paths.site, 'api/streams.json'), 'utf8');
  assert.doesNotMatch(await document(), /"a"/);
  assert.ok(existsSync(join(paths.site, 'media/a/36p.mp4')));
  assert.deepEqual((await verifySite({ paths })).faults, []);
  await refuses(build, [stream('a', 'one.mp4'), stream('b', 'two.mp4')], /was withdrawn/);
  await withdrawStream({ paths, id: 'a', purge: true, now: () => new Date() });
  assert.ok(!existsSync(join(paths.site, 'media/a')));
  assert.doesNotMatch(await readFile(join(paths.site, 'media/SHA256SUMS'), 'utf8'), / {2}a\//);
  assert.deepEqual((await verifySite({ paths })).faults, []);
  await refuses(build, [stream('a', 'two.mp4'), stream('b', 'two.mp4')], /was withdrawn/);
  await writeManifest(build.folder, [stream('b', 'two.mp4')]);
  await build.build();
  await assert.rejects(withdrawStream({ paths, id: 'never', purge: false, now: () => new Date() }), /never published/);
});

test('a field taken from the manifest needs a new version', async (t) => {
  const build = await publishOne(t);
  const withField = stream('a', 'one.mp4', 'progressive: [36p], hls: no, fields: { language: en }');
  await writeManifest(build.folder, [withField]);
  await build.build();
  await refuses(build, [stream('a', 'one.mp4')], /language was removed.*version must rise/);
  await writeFile(
    join(build.folder, 'catalogue.yaml'),
    `version: 3\n${await readFile(join(build.folder, 'catalogue.yaml'), 'utf8')}`,
  );
  assert.equal((await build.build()).document.version, 3);
});

test('a source that is not a video stops a strict publish; what was encoded meanwhile is taken up by the next build', async (t) => {
  const build = await publishOne(t);
  await writeFile(join(build.folder, 'text.mp4'), 'This is not a video.\n'.repeat(100));
  const manifest = [stream('a', 'one.mp4'), stream('b', 'two.mp4'), stream('c', 'text.mp4')];
  await refuses(build, manifest, /stream c: .*text\.mp4 is not a video/);
  await makeSource(build.folder, 'text.mp4', { hue: 45 });
  build.events.length = 0;
  const { encoded } = await build.build();
  assert.deepEqual(encoded, ['b', 'c']);
  const worked = build.events.filter((event) => event.kind === 'progress').map((event) => event.id);
  assert.deepEqual([...new Set(worked)], ['c']);
});

test('a source that is a playlist of other files is not followed', async (t) => {
  const build = await publishOne(t);
  const playlist = '#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nhttp://127.0.0.1:9/x.ts\n#EXT-X-ENDLIST\n';
  await writeFile(join(build.folder, 'list.m3u8'), playlist);
  await refuses(build, [stream('a', 'one.mp4'), stream('b', 'list.m3u8')], /stream b: .*not a video/);
});

test('a lost ledger or a lost file is told, and not papered over', async (t) => {
  const build = await publishOne(t);
  await rename(build.paths.ledger, `${build.paths.ledger}.away`);
  await assert.rejects(build.build(), /restore the ledger/);
  await rename(`${build.paths.ledger}.away`, build.paths.ledger);
  await rm(join(build.paths.site, 'media/a/36p.mp4'));
  await assert.rejects(build.build(), /media\/a\/36p\.mp4 was published and is missing/);
});

/** Two more streams, and an encoder with which the second of them takes some seconds: the one that the command line finds. */
async function longBuild(t: TestContext) {
  const build = await publishOne(t, await systemFfmpeg());
  await makeSource(build.folder, 'long.mp4', { seconds: 6, filters: 'noise=alls=80:allf=t' });
  const manifest = await writeManifest(build.folder, [
    stream('a', 'one.mp4'),
    stream('b', 'two.mp4'),
    stream('c', 'long.mp4'),
  ]);
  const env = { FFMPEG: await makeSlowEncoder(build.folder) };
  return { build, args: ['build', manifest, '--dir', build.paths.site, '--jobs', '1'], env };
}

const isEncodingLast = ({ said }: ReturnType<typeof startCatalogue>) => said.stdout.includes('c: encoding');

test('two builds at once: one works, the other says so and leaves', async (t) => {
  const { build, args, env } = await longBuild(t);
  const first = startCatalogue(args, { env });
  await until('the first build is at work', () => isEncodingLast(first));
  first.child.kill('SIGSTOP');
  const second = await runCatalogue(args, env);
  first.child.kill('SIGCONT');
  assert.equal(second.code, 1);
  assert.match(second.stderr, /another command is at work/);
  assert.equal((await first.ended).code, 0);
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
});

for (const [signal, code, told] of [
  ['SIGINT', 130, /interrupted; the site is as it was/],
  ['SIGKILL', null, /^$/],
] as const) {
  test(`${signal} in the middle of a build: the site is as it was, and the next build goes on`, async (t) => {
    const { build, args, env } = await longBuild(t);
    const before = await fingerprint(build);
    const run = startCatalogue(args, { env });
    await until('the second encode is under way', () => isEncodingLast(run));
    run.child.kill(signal);
    const result = await run.ended;
    assert.equal(result.code, code);
    assert.match(result.stderr.trim(), told);
    assert.deepEqual(await fingerprint(build), before);
    assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
    build.events.length = 0;
    await build.build();
    const worked = build.events.filter((event) => event.kind === 'progress').map((event) => event.id);
    assert.deepEqual([...new Set(worked)], ['c']);
    assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
  });
}

test('a disk that takes no more: a clear error, and the site is as it was', async (t) => {
  const { build, args } = await longBuild(t);
  const before = await fingerprint(build);
  const result = await startCatalogue([...args, '--strict'], { limitBlocks: 32 }).ended;
  assert.equal(result.code, 1);
  assert.match(result.stderr, /stream c: ffmpeg failed/);
  assert.deepEqual(await fingerprint(build), before);
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
  await build.build();
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
});

for (const [point, obstacle] of [
  ['while media is put in place', 'media/b/poster.jpg'],
  ['after the ledger, before the checksums', 'media/SHA256SUMS.br'],
  ['after the checksums, before the document', 'api/streams.json.br'],
] as const) {
  test(`a publish that breaks ${point}: readers see the old catalogue, and the next build finishes`, async (t) => {
    const build = await publishOne(t);
    const { site } = build.paths;
    const text = (path: string) => readFile(join(site, path), 'utf8');
    // Several streams, so that document and checksums are long enough to be compressed.
    await writeManifest(
      build.folder,
      ['a', 'c', 'd', 'e'].map((id) => stream(id, 'one.mp4')),
    );
    await build.build();
    const before = { document: await text('api/streams.json'), sums: await text('media/SHA256SUMS') };
    await rm(join(site, obstacle), { force: true });
    await mkdir(join(site, obstacle, 'in-the-way'), { recursive: true });
    await writeManifest(
      build.folder,
      ['a', 'c', 'd', 'e', 'b'].map((id) => stream(id, id === 'b' ? 'two.mp4' : 'one.mp4')),
    );
    await assert.rejects(build.build());
    await rm(join(site, obstacle), { recursive: true });
    assert.equal(await text('api/streams.json'), before.document);
    for (const line of before.sums.trim().split('\n')) assert.ok((await text('media/SHA256SUMS')).includes(line));
    await rm(join(site, 'media/SHA256SUMS.gz'), { force: true });
    assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
    const { document } = await build.build();
    assert.equal(document.streams.length, 5);
    assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
    assert.deepEqual((await verifySite({ paths: build.paths })).notes, []);
  });
}
