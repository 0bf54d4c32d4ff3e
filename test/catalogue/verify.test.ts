// verify finds whatever is wrong: each row damages a good site in one way and names what must be told.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cp, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type SitePaths, sitePathsOf } from '../../src/catalogue/site-paths.ts';
import { verifySite } from '../../src/catalogue/verify/verify.ts';
import { collectCleanup, makeBuild, makeFolder, makeSource, runCli, writeManifest } from './fixture.ts';

interface Damage {
  site: string;
  edit(path: string, change: (text: string) => string): Promise<void>;
  /** Makes SHA256SUMS true again for a file, so that only the deeper check can find the damage. */
  reseal(path: string): Promise<void>;
}

function damageOf(paths: SitePaths): Damage {
  const { site } = paths;
  const edit: Damage['edit'] = async (path, change) => {
    const text = await readFile(join(site, path), 'latin1');
    const next = change(text);
    assert.notEqual(next, text, `the damage to ${path} does nothing`);
    await writeFile(join(site, path), next, 'latin1');
  };
  return {
    site,
    edit,
    async reseal(path) {
      const digest = createHash('sha256')
        .update(await readFile(join(site, path)))
        .digest('hex');
      const name = path.slice('media/'.length);
      await edit('media/SHA256SUMS', (text) => text.replace(new RegExp(`^\\w{64}(?=  ${name}$)`, 'm'), digest));
      for (const suffix of ['.br', '.gz']) await rm(join(site, `media/SHA256SUMS${suffix}`), { force: true });
      await rm(paths.ledger, { force: true });
    },
  };
}

const playlist = 'media/a/hls/v-36p.m3u8';
const main = 'media/a/hls/main.m3u8';

const damages: [what: string, damage: (on: Damage) => Promise<unknown>, told: RegExp][] = [
  ['a flipped byte', ({ edit }) => edit('media/a/36p.mp4', (text) => `${text.slice(0, -1)}~`), /36p\.mp4: its digest/],
  ['a missing file', ({ site }) => rm(join(site, 'media/a/poster.jpg')), /poster\.jpg: does not exist/],
  ['a cut-off file', ({ site }) => truncate(join(site, 'media/a/36p.mp4'), 500), /36p\.mp4: (its digest|a box)/],
  [
    'a fourth byte of health',
    ({ site }) => writeFile(join(site, 'health.txt'), 'okay'),
    /health\.txt: is not the three/,
  ],
  [
    'a document that is not JSON',
    ({ site }) => writeFile(join(site, 'api/streams.json'), '{'),
    /streams\.json: is not JSON/,
  ],
  ['no document', ({ site }) => rm(join(site, 'api/streams.json')), /streams\.json: does not exist/],
  [
    'a field of another type',
    ({ edit }) => edit('api/streams.json', (t) => t.replace(/"fps": [\d.]+/, '"fps": "25"')),
    /fps/,
  ],
  [
    'another length',
    ({ edit }) => edit('api/streams.json', (t) => t.replace(/"duration_s": /, '"duration_s": 9')),
    /duration_s is/,
  ],
  ['another frame rate', ({ edit }) => edit('api/streams.json', (t) => t.replace(/"fps": 1/, '"fps": 3')), /fps is/],
  [
    'a path outside media',
    ({ edit }) => edit('api/streams.json', (t) => t.replace('/media/a/hls', '/other')),
    /under \/media\//,
  ],
  [
    'a path without a file',
    ({ edit }) => edit('api/streams.json', (t) => t.replace('a/hls/main', 'a/hls/none')),
    /not in SHA256SUMS/,
  ],
  [
    'a file that became a link',
    async ({ site }) => {
      await rm(join(site, 'media/a/36p.mp4'));
      await symlink('/etc/hostname', join(site, 'media/a/36p.mp4'));
    },
    /36p\.mp4: is not a plain file/,
  ],
  [
    'a compressed form of something else',
    ({ site }) => writeFile(join(site, 'media/SHA256SUMS.gz'), 'x'),
    /SHA256SUMS\.gz: cannot be unpacked/,
  ],
  [
    'a range that is not a fragment',
    async ({ edit, reseal }) => {
      await edit(playlist, (text) => text.replace(/BYTERANGE:(\d+)@/, (_, size) => `BYTERANGE:${Number(size) - 1}@`));
      await reseal(playlist);
    },
    /v-36p\.m3u8: has segment 0 at a range/,
  ],
  [
    'a duration that is not the fragment’s',
    async ({ edit, reseal }) => {
      await edit(playlist, (text) => text.replace(/EXTINF:\d/, 'EXTINF:4'));
      await reseal(playlist);
    },
    /v-36p\.m3u8: segment 0 lasts/,
  ],
  [
    'a segment longer than the target',
    async ({ edit, reseal }) => {
      await edit(playlist, (text) => text.replace('TARGETDURATION:6', 'TARGETDURATION:0'));
      await reseal(playlist);
    },
    /longer than its target/,
  ],
  [
    'a bandwidth that is off by a fifth',
    async ({ edit, reseal }) => {
      await edit(main, (text) =>
        text.replace(/:BANDWIDTH=(\d+)/, (_, bits) => `:BANDWIDTH=${Math.round(Number(bits) * 1.2)}`),
      );
      await reseal(main);
    },
    /main\.m3u8: variant .*BANDWIDTH is \d+, measured \d+/,
  ],
  [
    'codecs that are not in the file',
    async ({ edit, reseal }) => {
      await edit(main, (text) => text.replace(/avc1\.64\w+/, 'avc1.4d401e'));
      await reseal(main);
    },
    /CODECS is not avc1\.64/,
  ],
  [
    'a playlist that leads out of the stream',
    async ({ edit, reseal }) => {
      await edit(main, (text) => text.replace('\nv-36p.m3u8', '\n../../b/x.m3u8'));
      await reseal(main);
    },
    /outside the stream/,
  ],
  [
    'a thumbnail outside its sheet',
    async ({ edit, reseal }) => {
      await edit('media/a/thumbs.vtt', (text) => text.replace('xywh=0,0', 'xywh=4000,0'));
      await reseal('media/a/thumbs.vtt');
    },
    /outside its sheet/,
  ],
];

describe('verify', () => {
  let good: SitePaths;

  const cleanup = collectCleanup();
  after(cleanup.undoAll);
  before(async () => {
    const build = await makeBuild(cleanup);
    await makeSource(build.folder, 'a.mp4', { seconds: 2 });
    await writeManifest(build.folder, ['{ id: a, title: A, source: a.mp4, progressive: [36p] }']);
    await build.build();
    good = build.paths;
  });

  async function copy(t: Parameters<typeof makeFolder>[0]): Promise<SitePaths> {
    const paths = sitePathsOf(join(await makeFolder(t), 'site'));
    await cp(good.site, paths.site, { recursive: true });
    await cp(good.state, paths.state, { recursive: true });
    return paths;
  }

  test('finds nothing wrong with a good site, with its ledger and without', async (t) => {
    const paths = await copy(t);
    assert.deepEqual((await verifySite({ paths })).faults, []);
    await rm(paths.state, { recursive: true });
    const result = await verifySite({ paths });
    assert.deepEqual([...result.faults, ...result.notes], []);
    assert.ok(result.files > 10 && result.bytes > 10_000);
  });

  for (const [what, damage, told] of damages) {
    test(`tells ${what}`, async (t) => {
      const paths = await copy(t);
      await damage(damageOf(paths));
      const { faults } = await verifySite({ paths });
      assert.match(faults.join('\n'), told);
    });
  }

  test('knows from the ledger that a file was exchanged together with its checksum', async (t) => {
    const paths = await copy(t);
    const ledger = await readFile(paths.ledger);
    const on = damageOf(paths);
    await on.edit('media/a/poster.jpg', (text) => `${text}~`);
    await on.reseal('media/a/poster.jpg');
    assert.deepEqual((await verifySite({ paths })).faults, []);
    await writeFile(paths.ledger, ledger);
    assert.match((await verifySite({ paths })).faults.join(), /poster\.jpg: its digest in SHA256SUMS is not the one/);
  });

  test('on the command line: exit code 0 for a good site, 1 and every fault for a bad one', async (t) => {
    const paths = await copy(t);
    const fine = await runCli(['verify', '--decode', '--dir', paths.site]).ended;
    assert.deepEqual([fine.code, fine.stderr], [0, '']);
    assert.match(fine.stdout, /all is well/);
    await rm(join(paths.site, 'health.txt'));
    await rm(join(paths.site, 'media/a/poster.jpg'));
    const bad = await runCli(['verify', '--dir', paths.site]).ended;
    assert.equal(bad.code, 1);
    assert.match(bad.stdout, /fault: health\.txt[\s\S]*fault: media\/a\/poster\.jpg[\s\S]*faults/);
  });
});
