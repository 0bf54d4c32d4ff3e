// Two promises that no single scenario shows: no sequence of commands changes what an id means, and a reader never sees a
// half-made publish.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { CatalogueError } from '../../src/catalogue/catalogue-error.ts';
import type { CatalogueDocument } from '../../src/catalogue/document.ts';
import { hashFile } from '../../src/catalogue/files.ts';
import { judge } from '../../src/catalogue/history.ts';
import { foldLedger, type LedgerLine } from '../../src/catalogue/ledger.ts';
import { createOrigin } from '../../src/catalogue/origin.ts';
import { withdrawStream } from '../../src/catalogue/publish.ts';
import { parseSums } from '../../src/catalogue/site-texts.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import { listen, makeBuild, makeSource, type TestBuild, writeManifest } from './fixture.ts';

interface Entry {
  id: string;
  source: number;
  progressive: string[];
  hls: boolean;
  title: string;
}

const ids = fc.constantFrom('a', 'b', 'c');
const entry: fc.Arbitrary<Entry> = fc.record({
  id: ids,
  source: fc.integer({ min: 0, max: 2 }),
  progressive: fc.subarray(['36p', '90p'], { minLength: 1 }),
  hls: fc.boolean(),
  title: fc.constantFrom('T', 'U'),
});
type Command = { build: Entry[]; kbps: number } | { withdraw: string; purge: boolean };
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      build: fc.uniqueArray(entry, { selector: ({ id }) => id, maxLength: 3 }),
      kbps: fc.constantFrom(100, 100, 100, 120),
    }),
  },
  { weight: 1, arbitrary: fc.record({ withdraw: ids, purge: fc.boolean() }) },
);

/** All that a reader was ever told; it must stay true. */
interface Memory {
  digests: Map<string, string>;
  paths: Map<string, string>;
  withdrawn: Set<string>;
  purged: Set<string>;
}

async function carryOut(build: TestBuild, step: Command, memory: Memory): Promise<void> {
  try {
    if ('withdraw' in step) {
      await withdrawStream({ paths: build.paths, id: step.withdraw, purge: step.purge, now: () => new Date() });
      memory.withdrawn.add(step.withdraw);
      if (step.purge) memory.purged.add(step.withdraw);
    } else {
      const streams = step.build.map(
        ({ id, source, progressive, hls, title }) =>
          `{ id: ${id}, title: ${title}, source: ${source}.mp4, progressive: [${progressive}], hls: ${hls} }`,
      );
      const renditions = `renditions:
  - { label: 36p, width: 64, height: 36, video_kbps: ${step.kbps}, audio_kbps: 32 }
  - { label: 90p, width: 160, height: 90, video_kbps: 200, audio_kbps: 32 }\n`;
      await writeManifest(build.folder, streams, renditions);
      await build.build();
    }
  } catch (error) {
    // Refused: then everything must be as it was, which the checks below show.
    if (!(error instanceof CatalogueError)) throw error;
  }
}

async function checkPromises({ paths }: TestBuild, memory: Memory): Promise<void> {
  if (!existsSync(join(paths.site, 'api/streams.json'))) return;
  const document = JSON.parse(await readFile(join(paths.site, 'api/streams.json'), 'utf8')) as CatalogueDocument;
  for (const stream of document.streams) {
    assert.ok(!memory.withdrawn.has(stream.id), `${stream.id} came back`);
    for (const [label, path] of [...Object.entries(stream.progressive), ['hls', stream.hls] as const]) {
      const key = `${stream.id} ${label}`;
      if (path === null) assert.ok(!memory.paths.has(key), `${key} was taken away`);
      else assert.equal(memory.paths.get(key) ?? path, path, `${key} moved`);
      if (path !== null) memory.paths.set(key, path);
    }
  }
  const { digests } = parseSums(await readFile(join(paths.site, 'media/SHA256SUMS'), 'utf8'));
  for (const [path, digest] of digests) memory.digests.set(path, memory.digests.get(path) ?? digest);
  for (const [path, digest] of memory.digests) {
    if (memory.purged.has(path.split('/')[0]!)) continue;
    assert.equal((await hashFile(join(paths.site, 'media', path))).sha256, digest, `${path} changed`);
  }
  assert.deepEqual((await verifySite({ paths })).faults, []);
}

test('no sequence of builds and withdrawals changes, reuses or moves a published id', {
  timeout: 120_000,
}, async (t) => {
  const sources = await makeBuild(t);
  for (const i of [0, 1, 2]) await makeSource(sources.folder, `${i}.mp4`, { hue: i * 60, seconds: 0.5 });
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 4, maxLength: 7 }), async (steps) => {
      const build = await makeBuild(t);
      for (const i of [0, 1, 2]) await link(join(sources.folder, `${i}.mp4`), join(build.folder, `${i}.mp4`));
      const memory: Memory = { digests: new Map(), paths: new Map(), withdrawn: new Set(), purged: new Set() };
      for (const step of steps) {
        await carryOut(build, step, memory);
        await checkPromises(build, memory);
      }
    }),
    { numRuns: 6, endOnFailure: true },
  );
});

test('the rule alone, over many more sequences: an id keeps its source, its renditions and its end', () => {
  const rendition = (label: string, kbps: number) => ({
    label,
    width: 64,
    height: 36,
    video_kbps: kbps,
    audio_kbps: 32,
  });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 30 }), (steps) => {
      const lines: LedgerLine[] = [];
      for (const step of steps) {
        if ('withdraw' in step) {
          lines.push({ type: 'withdraw', at: '', id: step.withdraw });
          continue;
        }
        for (const { id, source, progressive, hls } of step.build) {
          const before = foldLedger(structuredClone(lines)).get(id);
          const wanted = progressive.map((label) => rendition(label, label === '36p' ? step.kbps : 200));
          const ladder = hls ? [rendition('36p', step.kbps), rendition('90p', 200)] : null;
          const verdict = judge(before, {
            id,
            sourceSha256: String(source),
            progressive: wanted,
            hls: ladder,
            asked: '',
          });
          if (verdict.kind !== 'encode') continue;
          assert.ok(!before?.withdrawn, 'a withdrawn id is never encoded again');
          assert.equal(before?.sourceSha256 ?? String(source), String(source));
          for (const each of verdict.progressive) assert.ok(!before?.progressive.has(each.label));
          if (verdict.hls !== null) assert.equal(before?.hls ?? null, null);
          const facts = { fps: 1, duration_s: 1, progressive: {}, hls: null, poster: '', thumbnails: '' };
          const common = { at: '', id, source_sha256: String(source), encoder: '', left_out: [], facts, files: {} };
          lines.push({ type: 'publish', ...common, progressive: verdict.progressive, hls: verdict.hls });
        }
      }
    }),
    { numRuns: 2000 },
  );
});

test('a reader polling during 40 publishes never sees a path that does not answer or a digest that does not match', async (t) => {
  const build = await makeBuild(t);
  const origin = createOrigin(build.paths.site);
  const base = await listen(t, origin.handle);
  await makeSource(build.folder, '0.mp4', { seconds: 0.5 });
  const streams = ['{ id: s0, title: T0, source: 0.mp4, progressive: [36p], hls: no }'];
  await writeManifest(build.folder, streams);
  await build.build();

  const pauseMs = 25; // or the readers keep the publisher from its work
  let publishing = true;
  const known = new Map<string, string>();
  const read = async (encoding: string): Promise<number> => {
    const headers = { 'accept-encoding': encoding };
    const document = (await (await fetch(`${base}/api/streams.json`, { headers })).json()) as CatalogueDocument;
    const { digests } = parseSums(await (await fetch(`${base}/media/SHA256SUMS`, { headers })).text());
    for (const stream of document.streams) {
      for (const path of [stream.poster!, ...Object.values(stream.progressive), ...(stream.hls ? [stream.hls] : [])]) {
        const digest = digests.get(path.slice('/media/'.length));
        assert.ok(digest, `${path} is in the document and not in SHA256SUMS`);
        assert.equal(known.get(path) ?? digest, digest);
        if (known.has(path)) continue;
        const answer = await fetch(base + path);
        assert.equal(answer.status, 200, path);
        const bytes = Buffer.from(await answer.arrayBuffer());
        assert.equal(createHash('sha256').update(bytes).digest('hex'), digest, path);
        known.set(path, digest);
      }
    }
    return document.streams.length;
  };
  const reader = async (encoding: string) => {
    let polls = 0;
    let last = 0;
    while (publishing) {
      const count = await read(encoding);
      assert.ok(count >= last, 'a later document has fewer streams');
      last = count;
      polls++;
      await setTimeout(pauseMs);
    }
    return polls;
  };
  const readers = ['br', 'gzip', 'identity'].map(reader);
  for (let i = 1; i <= 40; i++) {
    if (i % 4 === 0) {
      await makeSource(build.folder, `${i}.mp4`, { seconds: 0.5, hue: i * 8 });
      streams.push(`{ id: s${i}, title: T, source: ${i}.mp4, progressive: [36p], hls: ${i % 8 === 0} }`);
    }
    streams[0] = streams[0]!.replace(/T\d+/, `T${i}`);
    await writeManifest(build.folder, streams);
    await build.build();
  }
  publishing = false;
  const polls = await Promise.all(readers);
  assert.ok(
    polls.every((count) => count > 20),
    `${polls}`,
  );
  assert.equal(await read('br'), 11);
});
