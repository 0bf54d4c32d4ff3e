// Bundles the service and the command line into dist/service: a start loads some fifty files instead of 1,600. Each build
// has a folder of its own, which dist/service points to: processes that run from an older one still find the parts that
// they load later.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { type BuildOptions, build } from 'rolldown';
import { entries, installDir, packedDir } from '../src/lib/install.ts';
import { encodeSourceLines } from '../src/lib/source-lines.ts';

const dist = join(installDir, 'dist');
const current = join(dist, 'service');
/** Of the code of others in it. */
const licences = 'LICENCES.txt';
/** The gallery of the catalogue gives it out as it is. */
const player = createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js');
/** The one in use, and the one that a running service may still be using. */
const keptBuilds = 2;

const options = {
  platform: 'node',
  cwd: installDir,
  // Found at run time where they are installed, or not at all.
  external: [/^node:/, 'pg-native', /\.node$/],
  logLevel: 'warn',
} satisfies BuildOptions;

export async function bundleService(): Promise<void> {
  mkdirSync(dist, { recursive: true });
  const folder = mkdtempSync(join(dist, 'new-service-'));
  chmodSync(folder, 0o755); // the service may run as another user
  try {
    await bundleEntries(folder);
    const { name, isNew } = keep(folder, 'service');
    const link = `${folder}.link`;
    symlinkSync(name, link);
    renameSync(link, current);
    if (isNew) await fillCompileCache();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function bundleEntries(folder: string): Promise<void> {
  const { output } = await build({
    ...options,
    input: Object.fromEntries(Object.entries(entries).map(([name, source]) => [name, join(installDir, source)])),
    output: { dir: folder, format: 'esm', sourcemap: true, chunkFileNames: '[name]-[hash].js' },
  });
  writeSourceLines(folder);
  const modules = output.flatMap((chunk) => ('moduleIds' in chunk ? chunk.moduleIds : []));
  const packages = new Set([player, ...modules].flatMap((file) => packageFolder(file) ?? []));
  // The console is built from these.
  for (const name of ['react', 'react-dom', 'scheduler', 'uplot']) packages.add(join(installDir, 'node_modules', name));
  writeFileSync(join(folder, licences), licencesOf([...packages].sort()));
}

/**
 * The bundle as a folder without links for `npm pack`, in dist/package, with what the service reads as files of other
 * packages, so that the package depends on none. Their licences come along.
 */
export function packService(): void {
  const folder = `${packedDir}.${process.pid}`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const file of [licences, ...globSync(['*.js', '*.lines'], { cwd: current })])
    copyFileSync(join(current, file), join(folder, file));
  copyFileSync(player, join(folder, basename(player)));
  rmSync(packedDir, { recursive: true, force: true });
  renameSync(folder, packedDir);
}

/** null: a file of our own. */
function packageFolder(file: string): string | null {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? null;
}

function licencesOf(folders: string[]): string {
  const texts = folders.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    return `${name} ${version} (${license})\n\n${file ? readFileSync(join(folder, file), 'utf8').trim() : ''}\n`;
  });
  return `This package contains code of these packages, under their licences:\n\n${texts.join(`\n${'-'.repeat(80)}\n\n`)}`;
}

/**
 * Every module of the service for tests that import it (test/helpers/bundled-modules.ts): one file with all the code, and
 * for each source a small one that gives out what that source exports. Returns their folder.
 */
export async function bundleModules(): Promise<string> {
  const programs: string[] = Object.values(entries);
  const sources = globSync('src/**/*.ts', { cwd: installDir }).filter(
    (file) => !/\.(test|d)\.ts$/.test(file) && !programs.includes(file),
  );
  const folder = mkdtempSync(join(dist, 'new-modules-'));
  try {
    await build({
      ...options,
      // That everything is in one file is what is wanted.
      checks: { ineffectiveDynamicImport: false },
      input: Object.fromEntries(sources.map((file) => [file.slice(0, -'.ts'.length), join(installDir, file)])),
      output: {
        dir: folder,
        format: 'esm',
        sourcemap: true,
        entryFileNames: '[name].js',
        chunkFileNames: '[name].js',
        codeSplitting: { groups: [{ name: 'all', test: /./ }] },
      },
    });
    writeSourceLines(folder);
    for (const map of globSync('**/*.map', { cwd: folder })) rmSync(join(folder, map));
    return join(dist, keep(folder, 'modules').name);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Beside each file: which line of which source a line of it comes from, for stacks (src/lib/source-stacks.ts). */
function writeSourceLines(folder: string): void {
  const nameOf = (source: string) => relative(installDir, resolve(folder, source));
  for (const map of globSync('*.js.map', { cwd: folder })) {
    const lines = encodeSourceLines(JSON.parse(readFileSync(join(folder, map), 'utf8')), nameOf);
    writeFileSync(join(folder, map.replace(/\.map$/, '.lines')), lines);
  }
}

/**
 * Starts the service once, for a moment and in a folder of its own, so that its first real start finds compiled code. Where
 * that is not possible, the first start compiles it.
 */
async function fillCompileCache(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-build-'));
  const env = {
    ...{ PATH: process.env.PATH, SLUICE_DATA_DIR: dataDir, SLUICE_REGIONS: 'local=standin:', SLUICE_SAMPLE: 'off' },
    ...{ SLUICE_PORT: '0', SLUICE_ROUTER_PORT: '0', SLUICE_ROUTER_TLS_PORT: '0', SLUICE_ROUTER_WORKERS: '1' },
    SLUICE_DATA_PLANE: 'builtin',
  };
  const entry = join(current, 'supervisor.js');
  const child = spawn(process.execPath, [entry], {
    env: { ...env, NODE_COMPILE_CACHE: join(current, 'compiled') },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const giveUp = setTimeout(() => child.kill('SIGKILL'), 30_000);
  const ended = once(child, 'exit').catch(() => {});
  for await (const line of createInterface({ input: child.stdout })) if (line.includes('listens on')) child.kill();
  await ended;
  clearTimeout(giveUp);
  rmSync(dataDir, { recursive: true, force: true });
}

/** Moves a new build to a folder that is named by what it holds. */
function keep(folder: string, kind: 'service' | 'modules'): { name: string; isNew: boolean } {
  const hash = createHash('sha256');
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort())
    if (name.endsWith('.js') || name === licences) hash.update(name).update(readFileSync(join(folder, name)));
  const name = `${kind}-${hash.digest('hex').slice(0, 16)}`;
  const isNew = !existsSync(join(dist, name));
  try {
    if (isNew) renameSync(folder, join(dist, name));
  } catch (error) {
    // Another build has just put the same there.
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
  removeOld(kind, name);
  return { name, isNew };
}

function removeOld(kind: string, inUse: string): void {
  const changedMs = (name: string) => statSync(join(dist, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const others = readdirSync(dist)
    .filter((name) => new RegExp(`^${kind}-[0-9a-f]{16}$`).test(name) && name !== inUse)
    .sort((a, b) => changedMs(b) - changedMs(a));
  for (const name of others.slice(keptBuilds - 1)) rmSync(join(dist, name), { recursive: true, force: true });
}
