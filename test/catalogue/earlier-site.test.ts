// A site as the release of 3fefd20 left it (earlier-site/, without its gallery): later ones build on it without changing a
// byte that readers or caches may hold.
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { appendFile, cp, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { hashFile, listFiles } from '../../src/catalogue/files.ts';
import { pushSite } from '../../src/catalogue/push.ts';
import { formSuffixes } from '../../src/catalogue/site-texts.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import { startS3 } from '../helpers/s3.ts';
import { type Cleanup, makeBuild, makeSource, type TestBuild } from './fixture.ts';

async function copyEarlier(t: Cleanup): Promise<TestBuild> {
  const build = await makeBuild(t);
  await cp(join(import.meta.dirname, 'earlier-site'), build.folder, { recursive: true });
  return build;
}

/** Everything but the gallery, which is the release's own. */
async function digestsOf({ paths }: TestBuild): Promise<Record<string, string>> {
  const names = (await listFiles(paths.site)).filter((name) => !/^(gallery\/|index\.html)/.test(name));
  const digests: Record<string, string> = { ledger: (await hashFile(paths.ledger)).sha256 };
  for (const name of names) digests[name] = (await hashFile(join(paths.site, name))).sha256;
  return digests;
}

test('a site of 3fefd20 is verified, built on and pushed without a changed byte, where nothing new is asked for', async (t) => {
  const build = await copyEarlier(t);
  const before = await digestsOf(build);
  assert.ok(Object.keys(before).length > 30);
  const built = await build.build();
  assert.deepEqual([built.encoded, built.kept, built.failed], [[], 2, []]);
  assert.deepEqual(await digestsOf(build), before);
  const { faults, notes } = await verifySite({ paths: build.paths, decoder: build.encoder });
  assert.deepEqual([...faults, ...notes], []);

  const s3 = await startS3('films');
  t.after(() => s3.stop());
  await pushSite({ paths: build.paths, store: s3.storeAt(), prune: false });
  for (const name of Object.keys(before).filter((each) => /\.(mp4|jpg|vtt|json)$|SUMS$/.test(each))) {
    const bytes = Buffer.from(await (await fetch(`${s3.endpoint}/films/${name}`)).arrayBuffer());
    assert.equal(hash('sha256', bytes), before[name], name);
  }
  assert.deepEqual(await digestsOf(build), before);
});

test('a stream that is added to it changes nothing of the others, and what was withdrawn there stays withdrawn', async (t) => {
  const build = await copyEarlier(t);
  const before = await digestsOf(build);
  const manifest = join(build.folder, 'catalogue.yaml');
  await makeSource(build.folder, 'new.mp4');
  await appendFile(manifest, '  - { id: gone, title: Again, source: new.mp4, progressive: [36p] }\n');
  await assert.rejects(build.build(), /stream gone: this id was withdrawn and cannot be used again/);
  assert.deepEqual(await digestsOf(build), before);
  await cp(join(import.meta.dirname, 'earlier-site/catalogue.yaml'), manifest);
  await appendFile(manifest, '  - { id: new, title: New, source: new.mp4, progressive: [36p], hls: no }\n');
  assert.deepEqual((await build.build()).encoded, ['new']);
  const after = await digestsOf(build);
  const texts = ['api/streams.json', 'media/SHA256SUMS'].flatMap((name) => [
    name,
    ...formSuffixes.map((form) => name + form),
  ]);
  const changed = Object.keys(before).filter((name) => after[name] !== before[name]);
  assert.deepEqual(
    changed.filter((name) => !texts.includes(name)),
    ['ledger'],
  );
  const text = await readFile(join(build.paths.site, 'api/streams.json'), 'utf8');
  const earlier = JSON.parse(await readFile(join(import.meta.dirname, 'earlier-site/site/api/streams.json'), 'utf8'));
  assert.deepEqual(JSON.parse(text).streams.slice(0, 2), earlier.streams);
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
});

test('a smaller file that is added to a stream of it hides nothing of the larger one', async (t) => {
  const build = await copyEarlier(t);
  const before = await digestsOf(build);
  const manifest = join(build.folder, 'catalogue.yaml');
  const text = await readFile(manifest, 'utf8');
  const [rendition] = /^ {2}- \{ label: 36p.*\n/m.exec(text)!;
  const smaller = rendition
    .replace('36p', 'tiny')
    .replace(/width: \d+/, 'width: 32')
    .replace(/height: \d+/, 'height: 18');
  await writeFile(
    manifest,
    text.replace(rendition, smaller + rendition).replaceAll('progressive: [', 'progressive: [tiny, '),
  );
  const { document } = await build.build();
  for (const stream of document.streams) {
    assert.equal(stream.width, undefined, 'nobody wrote down how large the larger one is');
    const sizes = ['36p', 'tiny'].map(async (label) => {
      const { size } = await stat(join(build.paths.site, stream.progressive[label]!));
      return [label, size] as const;
    });
    assert.deepEqual(stream.bytes, Object.fromEntries(await Promise.all(sizes)));
  }
  const after = await digestsOf(build);
  const media = Object.keys(before).filter((name) => name.startsWith('media/') && !name.includes('SHA256SUMS'));
  for (const name of media) assert.equal(after[name], before[name], name);
  assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
});
