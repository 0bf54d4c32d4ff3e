// The container image of the service, built by deploy/Containerfile from its package, on a base that is made of this
// system's own files, unless a minimal Debian is given: no registry is asked, and nothing is compiled or installed.
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, copyFileSync, lstatSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { TestDocker } from './docker.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const base = 'debian-here:latest';
const image = 'sluice:test';

/** A root that debootstrap made, as the recipe in deploy/Containerfile says: npm run bare -- image. */
const minimalDebian = process.env.SLUICE_TEST_IMAGE_BASE;

/** From what `npm pack` has made; returns its name. */
export async function buildServiceImage({ client }: TestDocker, packed: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-base-'));
  try {
    if (!minimalDebian) fillBase(folder);
    const files = tarOf(['--directory', minimalDebian ?? folder, '.']);
    await client.importImage(files, { repo: 'debian-here', tag: 'latest' });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const options = { dockerfile: 'Containerfile', t: image, buildargs: { BASE: base } };
  await client.buildImage(tarOf(context(packed)), options);
  return image;
}

const tarOf = (args: string[]): Readable =>
  spawn('tar', ['--create', '--owner=0', '--group=0', ...args], { stdio: ['ignore', 'pipe', 'inherit'] }).stdout;

const modules = realpathSync(join(root, 'node_modules'));
const node = `node_modules/node-linux-${process.arch}/bin/node`;

/** What .dockerignore leaves of a checkout. */
const context = (packed: string): string[] => [
  ...['--directory', dirname(packed), basename(packed), '--directory', dirname(modules), node],
  // Docker wants it at the root of what it is sent.
  ...['--directory', join(root, 'deploy'), 'Containerfile'],
];

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
  const programs = ['/bin/sh', '/usr/bin/install', '/bin/sleep'];
  for (const path of [...programs, ...librariesOf([...programs, join(dirname(modules), node)]), '/etc/os-release'])
    put(path);
}
