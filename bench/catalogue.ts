// npm run bench -- catalogue [build | bits | thousand | serve | verify | players]: every figure the catalogue promises, each
// beside what it is compared with, in one run. `players` loads from npm, so it runs only where it is named.

import { execFile } from 'node:child_process';
import { link, mkdir, readFile, writeFile } from 'node:fs/promises';
import { setPriority } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { installMissing } from '../scripts/packages.ts';
import type { PublishLine } from '../src/catalogue/ledger.ts';
import type { Preset } from '../src/catalogue/manifest.ts';
import { encodeArgs, thumbnailSheet } from '../src/catalogue/media/encode-args.ts';
import { runFfmpeg } from '../src/catalogue/media/ffmpeg.ts';
import { probeSource, withRate } from '../src/catalogue/media/probe-source.ts';
import { chooseRungs } from '../src/catalogue/media/rungs.ts';
import { openSource } from '../src/catalogue/media/source-file.ts';
import { chooseSounds } from '../src/catalogue/media/tracks.ts';
import type { SitePaths } from '../src/catalogue/site-paths.ts';
import { verifySite } from '../src/catalogue/verify/verify-site.ts';
import { collectCleanup, makeBuild, makeSource, systemFfmpeg } from '../test/catalogue/fixture.ts';
import { benchBits } from './catalogue/bits.ts';
import { allMet, inTurns, judge, secondsOf } from './catalogue/in-turns.ts';
import { benchOrigin } from './catalogue/origin.ts';
import { tryPlayers } from './catalogue/players.ts';

/**
 * A catalogue of 1,000 published streams without encoding 1,000 videos: the ledger, the files and the document are written
 * as a publish would have left them, from one stream that really was encoded.
 */
async function multiply(paths: SitePaths, folder: string, count: number): Promise<void> {
  const line = JSON.parse((await readFile(paths.ledger, 'utf8')).split('\n')[0]!) as PublishLine;
  const { id } = line;
  const lines: string[] = [];
  const entries: string[] = [];
  for (let i = 0; i < count; i++) {
    const next = `${id}-${i}`;
    const renamed = JSON.parse(JSON.stringify(line).replaceAll(`media/${id}/`, `media/${next}/`)) as PublishLine;
    for (const path of Object.keys(line.files)) {
      const target = join(paths.site, path.replace(`media/${id}/`, `media/${next}/`));
      await mkdir(dirname(target), { recursive: true });
      await link(join(paths.site, path), target);
    }
    await link(join(folder, 'film.mp4'), join(folder, `${next}.mp4`));
    lines.push(JSON.stringify({ ...renamed, id: next }));
    entries.push(`  - { id: ${next}, title: Film ${i}, source: ${next}.mp4, progressive: [180p, 360p], hls: yes }\n`);
  }
  await writeFile(paths.ledger, `${await readFile(paths.ledger, 'utf8')}${lines.join('\n')}\n`);
  const manifest = await readFile(join(folder, 'catalogue.yaml'), 'utf8');
  await writeFile(join(folder, 'catalogue.yaml'), manifest + entries.join(''));
}

installMissing(['ffmpeg', 'nginx', 'wrk']);
try {
  // Rivals and we alike, before whatever else runs here: a ratio is worth little while others take the cores.
  setPriority(-10);
} catch {
  console.log('not allowed to run before other programs; the figures are as quiet as the machine is');
}
const cleanup = collectCleanup();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => cleanup.undoAll().finally(() => process.exit(130)));
const seconds = Number(process.env.BENCH_SECONDS ?? 1);
const execute = promisify(execFile);
const renditions = [
  { label: '180p', width: 320, height: 180, video_kbps: 300, audio_kbps: 64 },
  { label: '360p', width: 640, height: 360, video_kbps: 900, audio_kbps: 96 },
];
const manifest = (ids: string[], preset: Preset) => `preset: ${preset}
renditions:
${renditions.map((each) => `  - ${JSON.stringify(each)}\n`).join('')}streams:
${ids.map((id) => `  - { id: ${id}, title: ${id}, source: film.mp4, progressive: [180p, 360p], hls: yes }\n`).join('')}`;

const FILM_SECONDS = 20;

/** The encode of a build, and nothing around it. */
async function bareEncode(path: string, folder: string): Promise<void> {
  const ffmpeg = await systemFfmpeg();
  const { file, ...source } = await openSource({ path, name: path });
  const facts = withRate(await probeSource(ffmpeg, source), false);
  const { rungs } = chooseRungs(facts, renditions);
  await mkdir(join(folder, 'hls'), { recursive: true });
  const plan = {
    source,
    facts,
    everyField: false,
    seconds: FILM_SECONDS,
    heldFrames: 0,
    sounds: chooseSounds(source, facts, { languages: null, language: null, all: true }),
    preset: 'medium' as const,
    progressive: rungs,
    hls: rungs,
    extras: thumbnailSheet(facts, FILM_SECONDS),
  };
  const args = encodeArgs(plan);
  const start = performance.now();
  await runFfmpeg(ffmpeg, args, { cwd: folder, source });
  bareSeconds = (performance.now() - start) / 1000;
  await file.close();
}
let bareSeconds = 0;

async function benchBuild(): Promise<void> {
  const made = await makeBuild(cleanup, await systemFfmpeg());
  const source = await makeSource(made.folder, 'film.mp4', { seconds: FILM_SECONDS, size: '640x360', rate: '25' });
  let round = 0;
  const ids: string[] = [];
  const result = await inTurns(4, {
    bare: async () => {
      await bareEncode(source, join(made.folder, `bare-${round++}`));
      return bareSeconds;
    },
    build: async () => {
      ids.push(`film-${round}`);
      await writeFile(join(made.folder, 'catalogue.yaml'), manifest(ids, 'medium'));
      return secondsOf(() => made.build());
    },
  });
  const share = result.least.build / result.least.bare;
  const of = `${result.least.build.toFixed(2)} s of ${result.least.bare.toFixed(2)} s; 20 s of film, 2 rungs, MP4 and HLS`;
  judge('build of a catalogue / bare ffmpeg', share.toFixed(2), '≤ 1.05', share <= 1.05, of);
}

/** A thousand small streams: what a file costs matters here, not what a byte does. */
async function makeThousand(): Promise<Awaited<ReturnType<typeof makeBuild>>> {
  const made = await makeBuild(cleanup);
  await makeSource(made.folder, 'film.mp4', { seconds: 2, size: '640x360', rate: '10' });
  await writeFile(join(made.folder, 'catalogue.yaml'), manifest(['film'], 'ultrafast'));
  await made.build();
  await multiply(made.paths, made.folder, 1000);
  await made.build();
  return made;
}

async function benchThousand(): Promise<void> {
  const made = await makeThousand();
  // As people run it: bin/sluice.js keeps what Node.js has compiled.
  const sluice = join(import.meta.dirname, '../bin/sluice.js');
  const build = [sluice, 'catalogue', 'build', join(made.folder, 'catalogue.yaml'), '--dir', made.paths.site];
  await new Promise((resolve) => setTimeout(resolve, 2500));
  // The first build remembers what it looked at, the second finds nothing to do.
  await coreSeconds(build);
  const idle = await inTurns(12, { build: () => coreSeconds(build), node: () => coreSeconds(['-e', '0']) });
  const { build: whole, node: bare } = idle.least;
  const what = 'build with nothing to do, 1,000 streams, CPU time of the whole process';
  judge(what, `${whole.toFixed(2)} s`, '< 0.25 s', whole < 0.25, `of which Node.js ${bare.toFixed(2)} s`);
  await benchVerifyThousand(made.paths);
}

async function benchServe(): Promise<void> {
  const made = await makeThousand();
  const film = '/media/film/large.mp4';
  await writeFile(join(made.paths.site, film), Buffer.alloc(32 * 1024 * 1024, 5));
  await benchOrigin(cleanup, made.paths.site, film, seconds);
}

/** What a Node.js process takes of a core until it has ended: on a machine with nothing else to do, the time it takes. */
async function coreSeconds(words: string[]): Promise<number> {
  const script = 'TIMEFORMAT="%U %S"; time "$@" > /dev/null';
  const { stderr } = await execute('bash', ['-c', script, 'bash', process.execPath, ...words]);
  const [user, system] = stderr.trim().split(' ').map(Number);
  return user! + system!;
}

async function benchVerifyThousand(paths: SitePaths): Promise<void> {
  const media = join(paths.site, 'media');
  const times = await inTurns(5, {
    verify: () =>
      secondsOf(async () => {
        const { faults } = await verifySite({ paths });
        if (faults.length > 0) throw new Error(faults.join('\n'));
      }),
    sha256sum: () => secondsOf(() => execute('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: media })),
  });
  const ratio = times.ratio('verify', 'sha256sum');
  const of = `${times.of.verify.toFixed(2)} s and ${times.of.sha256sum.toFixed(2)} s`;
  judge('time to verify 1,000 small streams / `sha256sum`', ratio.toFixed(2), '≤ 3', ratio <= 3, of);
}

async function benchVerify(): Promise<void> {
  const made = await makeBuild(cleanup);
  const noise = { seconds: 30, size: '1280x720', rate: '25', filters: 'noise=alls=60:allf=t', output: ['-qp', '12'] };
  await makeSource(made.folder, 'film.mp4', noise);
  const large = { label: '720p', width: 1280, height: 720, video_kbps: 60_000, audio_kbps: 128 };
  const text = `preset: ultrafast\nrenditions:\n  - ${JSON.stringify(large)}\nstreams:\n`;
  await writeFile(
    join(made.folder, 'catalogue.yaml'),
    `${text}  - { id: film, title: Film, source: film.mp4, progressive: [720p], hls: yes }\n`,
  );
  await made.build();
  let bytes = 0;
  const media = join(made.paths.site, 'media');
  const times = await inTurns(5, {
    verify: () =>
      secondsOf(async () => {
        const result = await verifySite({ paths: made.paths });
        if (result.faults.length > 0) throw new Error(result.faults.join('\n'));
        bytes = result.bytes;
      }),
    sha256sum: () => secondsOf(() => execute('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: media })),
  });
  const rate = (time: number) => bytes / 1e6 / time;
  const share = times.ratio('sha256sum', 'verify');
  const size = `${(bytes / 1e6).toFixed(0)} MB`;
  const of = `${rate(times.of.verify).toFixed(0)} MB/s of ${rate(times.of.sha256sum).toFixed(0)} MB/s`;
  judge(`verify ${size}, bytes a second / \`sha256sum\``, share.toFixed(2), '≥ 0.80', share >= 0.8, of);
}

try {
  const parts = {
    build: benchBuild,
    bits: () => benchBits(cleanup),
    thousand: benchThousand,
    serve: benchServe,
    verify: benchVerify,
  };
  const chosen = process.argv[3];
  for (const [name, bench] of Object.entries(parts)) if (chosen === undefined || chosen === name) await bench();
  if (chosen === 'players') await tryPlayers(cleanup);
} finally {
  await cleanup.undoAll();
}
// A run that writes the page has all of it in there.
process.exitCode = allMet() || process.env.BENCH_RESULTS !== undefined ? 0 : 1;
