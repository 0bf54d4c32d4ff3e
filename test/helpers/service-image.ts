// The container image of the service, built by deploy/Containerfile from what is installed here, on a base that is made of
// this system's own files: no registry is asked, and nothing is compiled or installed.
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestDocker } from './docker.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const base = 'debian-here:latest';
const image = 'sluice:test';

/** Returns its name. */
export async function buildServiceImage({ client }: TestDocker): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-base-'));
  try {
    fillBase(folder);
    const files = tarOf(['--directory', folder, '.']);
    await follow(await client.importImage(files, { repo: 'debian-here', tag: 'latest' }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const options = { dockerfile: 'Containerfile', t: image, buildargs: { BASE: base } };
  await follow(await client.buildImage(tarOf(context()), options));
  return image;
}

const tarOf = (args: string[]): NodeJS.ReadableStream =>
  spawn('tar', ['--create', '--owner=0', '--group=0', ...args], { stdio: ['ignore', 'pipe', 'inherit'] }).stdout;

const modules = realpathSync(join(root, 'node_modules'));
const nodePackage = `node-linux-${process.arch}`;

/** As `docker build` sends it from a checkout in which `npm ci --omit=dev` has run, but for its two largest packages. */
function context(): string[] {
  // Nothing here encodes, so ffmpeg is left out, and node is in the base: Docker reads what it copies four times.
  return [
    ...['--exclude=*.map', '--exclude=hls.js/src', '--exclude=compiled'],
    ...['--directory', root, 'package.json', 'LICENSE', 'bin', 'console/dist', 'src/cli/overview.txt'],
    ...['src/catalogue/gallery', 'dist/service', ...bundles()],
    ...['--directory', dirname(modules), 'node_modules/.bin/node', 'node_modules/hls.js'],
    ...['--directory', join(root, 'deploy'), 'Containerfile'],
  ];
}

const bundles = (): string[] => [`dist/${readlinkSync(join(root, 'dist/service'))}`];

/** What is in every Debian, however small: apt itself needs them. */
const inEveryDebian = new Set([
  'libc6',
  'libgcc-s1',
  'libstdc++6',
  'libacl1',
  'libattr1',
  'libselinux1',
  'libpcre2-8-0',
]);

/** The libraries of these programs; throws where a minimal Debian lacks one. */
function librariesOf(programs: string[]): string[] {
  const listed = execFileSync('ldd', programs, { encoding: 'utf8' });
  const paths = [...listed.matchAll(/(?:=> |^\s+)(\/\S+) \(/gm)].map(([, path]) => path!);
  for (const path of new Set(paths)) {
    const name = execFileSync('dpkg-query', ['--search', `*/${basename(realpathSync(path))}`], { encoding: 'utf8' });
    const owner = name.split(':', 1)[0]!;
    if (!inEveryDebian.has(owner)) throw new Error(`${path} is part of ${owner}, which a minimal Debian does not have`);
  }
  return [...new Set(paths)];
}

/** Glibc, libstdc++ and three programs, where Debian has them; and node, where the image has it. */
function fillBase(folder: string): void {
  const put = (path: string, place = realpathSync(dirname(path))) => {
    mkdirSync(join(folder, place), { recursive: true });
    copyFileSync(path, join(folder, place, basename(path)));
  };
  for (const name of ['bin', 'lib', 'lib64']) {
    if (lstatSync(`/${name}`, { throwIfNoEntry: false })?.isSymbolicLink())
      symlinkSync(`usr/${name}`, join(folder, name));
  }
  mkdirSync(join(folder, 'tmp'));
  chmodSync(join(folder, 'tmp'), 0o1777);
  const node = join(modules, nodePackage, 'bin/node');
  const programs = ['/bin/sh', '/usr/bin/install', '/bin/sleep'];
  for (const path of [...programs, ...librariesOf([...programs, node]), '/etc/os-release']) put(path);
  put(node, `/opt/sluice/node_modules/${nodePackage}/bin`);
}

async function follow(stream: NodeJS.ReadableStream): Promise<void> {
  let text = '';
  for await (const chunk of stream) text += chunk;
  const failed = text.split('\n').find((line) => line.includes('"error"'));
  if (failed) throw new Error(failed);
}
