// The container image of the service, built by deploy/Containerfile from what is installed here, on a base that is made of
// this system's own files: no registry is asked, and nothing is compiled or installed.
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
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
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { TestDocker } from './docker.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const base = 'debian-here:latest';
const image = 'sluice:test';

/** Returns its name. */
export async function buildServiceImage({ client }: TestDocker): Promise<string> {
  await follow(await client.importImage(Readable.from([baseFiles()]), { repo: 'debian-here', tag: 'latest' }));
  const context = spawn('tar', contextArguments(), { stdio: ['ignore', 'pipe', 'inherit'] });
  const options = { dockerfile: 'Containerfile', t: image, buildargs: { BASE: base } };
  await follow(await client.buildImage(context.stdout, options));
  return image;
}

/** As `docker build` sends it from a checkout in which `npm ci --omit=dev` has run. */
function contextArguments(): string[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: true; devOptional?: true; optional?: true }>;
  };
  const modules = realpathSync(join(root, 'node_modules'));
  const isThere = (name: string) => lstatSync(join(dirname(modules), name), { throwIfNoEntry: false }) !== undefined;
  // Without ffmpeg, the largest of them but one: nothing here encodes, and an image is built once for every run.
  const production = Object.entries(packages)
    .filter(([name]) => !name.startsWith('node_modules/@ffmpeg-installer/'))
    .filter(([name, { dev, devOptional }]) => name.lastIndexOf('node_modules/') === 0 && !dev && !devOptional)
    .map(([name]) => name);
  return [
    ...['--create', '--owner=0', '--group=0', '--anchored', '--wildcards', `--exclude-from=${root}.dockerignore`],
    ...['--directory', root, '--no-wildcards', 'package.json', 'LICENSE', 'bin', 'console', 'src'],
    ...['--directory', dirname(modules), 'node_modules/.bin/node', ...production.filter(isThere)],
    ...['--directory', join(root, 'deploy'), 'Containerfile'],
  ];
}

/** Glibc, libstdc++ and three programs, where Debian has them. */
function baseFiles(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-base-'));
  const put = (path: string) => {
    const place = join(folder, realpathSync(dirname(path)));
    mkdirSync(place, { recursive: true });
    copyFileSync(path, join(place, basename(path)));
  };
  try {
    for (const name of ['bin', 'lib', 'lib64']) {
      if (lstatSync(`/${name}`, { throwIfNoEntry: false })?.isSymbolicLink())
        symlinkSync(`usr/${name}`, join(folder, name));
    }
    mkdirSync(join(folder, 'tmp'));
    chmodSync(join(folder, 'tmp'), 0o1777);
    const programs = ['/bin/sh', '/usr/bin/install', '/bin/sleep'];
    const libraries = execFileSync('ldd', [...programs, process.execPath], { encoding: 'utf8' });
    const paths = [...libraries.matchAll(/(?:=> |^\s+)(\/\S+) \(/gm)].map(([, path]) => path!);
    for (const path of new Set([...programs, ...paths, '/etc/os-release'])) put(path);
    return execFileSync('tar', ['-c', '--owner=0', '--group=0', '-C', folder, '.'], { maxBuffer: 2 ** 26 });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function follow(stream: NodeJS.ReadableStream): Promise<void> {
  let text = '';
  for await (const chunk of stream) text += chunk;
  const failed = text.split('\n').find((line) => line.includes('"error"'));
  if (failed) throw new Error(failed);
}
