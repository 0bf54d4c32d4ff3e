// verify finds whatever is wrong: each row of damages.ts harms a good site in one way and names what must be told. The same
// code guards the publish: what it finds inside the files of a site, it finds while they are staged.
import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { listFiles } from '../../src/catalogue/files.ts';
import type { SitePaths } from '../../src/catalogue/site-paths.ts';
import { verifySite } from '../../src/catalogue/verify/verify-site.ts';
import { verifyStage } from '../../src/catalogue/verify/verify-stream.ts';
import { damageOf, readLines, reseal } from './damage.ts';
import { inside, outside } from './damages.ts';
import { makeBuild, makeSource, runCatalogue, sharedSite, systemFfmpeg, writeManifest } from './fixture.ts';

describe('verify', () => {
  const publish = sharedSite(async (build) => {
    await makeSource(build.folder, 'a.mp4', { seconds: 3, size: '160x90' });
    await makeSource(build.folder, 'b.mp4', { seconds: 13, hue: 90 });
    const streams = ['a', 'b'].map((id) => `{ id: ${id}, title: ${id}, source: ${id}.mp4, progressive: [36p, 90p] }`);
    await writeManifest(build.folder, streams.slice(0, 1));
    await build.build();
    await writeManifest(build.folder, streams);
    await build.build({ hlsLayout: 'segments' });
  });
  const copy = async (t: TestContext): Promise<SitePaths> => (await publish(t)).paths;

  test('finds nothing wrong with a good site, with its ledger and without', async (t) => {
    const paths = await copy(t);
    assert.deepEqual((await verifySite({ paths })).faults, []);
    await rm(paths.state, { recursive: true });
    const result = await verifySite({ paths });
    assert.deepEqual([...result.faults, ...result.notes], []);
    assert.ok(result.files > 10 && result.bytes > 10_000);
  });

  test('there are 40 ways to damage a site here, and more, each with a name of its own', () => {
    const names = [...outside, ...inside].map(([what]) => what);
    assert.ok(names.length >= 40);
    assert.equal(new Set(names).size, names.length);
  });

  for (const [what, damage, told] of outside) {
    test(`tells ${what}`, async (t) => {
      const paths = await copy(t);
      await damage(damageOf(paths));
      assert.match((await verifySite({ paths })).faults.join('\n'), told);
    });
  }

  test('a site that is resealed as it is has no fault', async (t) => {
    const paths = await copy(t);
    await reseal(paths);
    const { faults, notes } = await verifySite({ paths });
    assert.deepEqual([...faults, ...notes], []);
  });

  for (const [what, damage, told] of inside) {
    test(`tells ${what}, in the site and in staging`, async (t) => {
      const paths = await copy(t);
      await damage(damageOf(paths));
      await reseal(paths);
      const { faults } = await verifySite({ paths });
      assert.match(faults.join('\n'), told);
      assert.doesNotMatch(faults.join('\n'), /digest|compressed form|never published/);
      const lines = await readLines(paths.ledger);
      const document = JSON.parse(await readFile(join(paths.site, 'api/streams.json'), 'utf8'));
      const staged = lines.map((line) => ({ line, folder: join(paths.site, 'media', line.id) }));
      const found = (await verifyStage(staged, document)).flatMap((each) => each.faults);
      assert.match(found.join('\n'), told);
    });
  }

  test('a file that cannot be decoded is named among those that can', async (t) => {
    const paths = await copy(t);
    const spoil = (text: string) =>
      text.slice(0, text.indexOf('mdat') + 500) + '\xff'.repeat(300) + text.slice(text.indexOf('mdat') + 800);
    await damageOf(paths).edit('media/a/36p.mp4', spoil);
    await reseal(paths);
    const { faults } = await verifySite({ paths, decoder: await systemFfmpeg() });
    assert.match(faults.join('\n'), /^media\/a\/36p\.mp4: cannot be decoded: [^\n]+$/);
  });

  test('on the command line: exit code 0 for a good site, 1 and every fault for a bad one', async (t) => {
    const paths = await copy(t);
    const fine = await runCatalogue(['verify', '--decode', '--dir', paths.site]);
    assert.deepEqual([fine.code, fine.stderr], [0, '']);
    assert.match(fine.stdout, /all is well/);
    await rm(join(paths.site, 'health.txt'));
    await rm(join(paths.site, 'media/a/poster.jpg'));
    const bad = await runCatalogue(['verify', '--dir', paths.site]);
    assert.equal(bad.code, 1);
    assert.match(bad.stdout, /fault: health\.txt[\s\S]*fault: media\/a\/poster\.jpg[\s\S]*faults/);
  });

  test('what an encoder left damaged, with exit code 0, is not published; the next build encodes it again', async (t) => {
    const build = await makeBuild(t, await systemFfmpeg());
    await makeSource(build.folder, 'a.mp4');
    await makeSource(build.folder, 'b.mp4', { hue: 90 });
    const stream = (id: string) => `{ id: ${id}, title: ${id}, source: ${id}.mp4, progressive: [36p] }`;
    const manifest = await writeManifest(build.folder, [stream('a')]);
    await build.build();
    const before = await listFiles(build.paths.site);
    await writeManifest(build.folder, [stream('a'), stream('b')]);
    const wrapper = join(build.folder, 'ffmpeg');
    const cut = '[ -e 36p.mp4 ] && truncate -s -100 36p.mp4';
    const script = `#!/bin/sh\n"${build.encoder.path}" "$@" || exit $?\n${cut}\nexit 0\n`;
    await writeFile(wrapper, script, { mode: 0o755 });
    const args = ['build', manifest, '--dir', build.paths.site];
    const bad = await runCatalogue(args, { FFMPEG: wrapper });
    assert.equal(bad.code, 3);
    assert.match(bad.stderr, /^sluice catalogue: stream b: .*: a box at \d+ runs past the end; is the disk full\?\n$/);
    assert.deepEqual(await listFiles(build.paths.site), before);
    assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
    assert.equal((await runCatalogue(args)).code, 0);
    assert.deepEqual((await verifySite({ paths: build.paths })).faults, []);
  });
});
