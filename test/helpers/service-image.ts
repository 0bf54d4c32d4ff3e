// The container image of the service, built by deploy/Containerfile from what is installed here, on a base that is made of
// this system's own files: no registry is asked, and nothing is compiled or installed.
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
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
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: true; devOptional?: true }>;
  };
  const isThere = (name: string) => existsSync(join(dirname(modules), name));
  // Nothing here encodes, so ffmpeg is left out, and node is in the base: Docker reads what it copies four times.
  const isLarge = (name: string) => /@ffmpeg-installer|node-linux-/.test(name);
  const production = Object.entries(packages)
    .filter(([name, { dev, devOptional }]) => name.lastIndexOf('node_modules/') === 0 && !dev && !devOptional)
    .map(([name]) => name)
    .filter((name) => !isLarge(name) && isThere(name));
  return [
    ...['--anchored', '--wildcards', `--exclude-from=${root}.dockerignore`],
    ...['--directory', root, '--no-wildcards', 'package.json', 'LICENSE', 'bin', 'console', 'src'],
    ...['--directory', dirname(modules), 'node_modules/.bin/node', ...production],
    ...['--directory', join(root, 'deploy'), 'Containerfile'],
  ];
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
  const libraries = execFileSync('ldd', [...programs, node], { encoding: 'utf8' });
  const paths = [...libraries.matchAll(/(?:=> |^\s+)(\/\S+) \(/gm)].map(([, path]) => path!);
  for (const path of new Set([...programs, ...paths, '/etc/os-release'])) put(path);
  put(node, `/opt/sluice/node_modules/${nodePackage}/bin`);
}

async function follow(stream: NodeJS.ReadableStream): Promise<void> {
  let text = '';
  for await (const chunk of stream) text += chunk;
  const failed = text.split('\n').find((line) => line.includes('"error"'));
  if (failed) throw new Error(failed);
}
