// npm run bare [-- start|test|image …]: the commands of the README in a new, minimal Debian with nothing but Node.js 20 and
// npm; and the container image on that Debian, as deploy/Containerfile says. It needs root, and installs debootstrap where that
// is missing. The root is a mount point, as dockerd wants one, and is gone afterwards.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { installDir } from '../src/lib/install.ts';
import { dockerPrograms, installMissing } from './packages.ts';

const release = 'bookworm';
const nodeMajor = 20;
const readyWithinMs = 120_000;
/** A network whose registries are behind an authority of its own. */
const authorities = process.env.NODE_EXTRA_CA_CERTS;

const run = (program: string, args: string[]): void => void execFileSync(program, args, { stdio: 'inherit' });
const inside = (root: string, ...words: string[]): string[] => [
  root,
  ...[
    '/usr/bin/env',
    '-i',
    'HOME=/root',
    'PATH=/opt/node/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    `CI=${process.env.CI ?? ''}`,
    ...(authorities ? [`NODE_EXTRA_CA_CERTS=${authorities}`] : []),
  ],
  ...words,
];

/** Where this machine gets its packages. */
function mirror(): string {
  const lists = globSync('/etc/apt/{sources.list,sources.list.d/*}').map((path) => readFileSync(path, 'utf8'));
  const found = lists.flatMap((text) => [...text.matchAll(/^(?:URIs:|deb)\s+(?:\[.*\]\s+)?(\S+)/gm)]);
  const [, url] = found.find(([, each]) => /\/debian\/?$/.test(each!)) ?? [];
  if (!url) throw new Error('apt of this machine names no mirror of Debian');
  return url;
}

const bootstrap = (root: string): void => run('debootstrap', ['--variant=minbase', release, root, mirror()]);

/** The tests of the image, with the base that deploy/Containerfile describes. */
function tryImage(): boolean {
  const base = mkdtempSync(join(tmpdir(), 'sluice-base-'));
  try {
    bootstrap(base);
    const env = { ...process.env, CI: 'true', SLUICE_TEST_IMAGE_BASE: base };
    const args = ['--test', 'test/deploy/package.test.ts'];
    return spawnSync(process.execPath, args, { env, cwd: installDir, stdio: 'inherit' }).status === 0;
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

function makeRoot(root: string): void {
  bootstrap(root);
  run('mount', ['--bind', root, root]);
  run('mount', ['-t', 'proc', 'proc', join(root, 'proc')]);
  for (const name of ['sys', 'dev']) run('mount', ['--rbind', '--make-rslave', `/${name}`, join(root, name)]);
  for (const path of ['/etc/resolv.conf', '/etc/hosts', '/etc/apt', ...(authorities ? [authorities] : [])])
    cpSync(path, join(root, path), { recursive: true });
  const userConfig = join(homedir(), '.npmrc');
  if (existsSync(userConfig)) cpSync(userConfig, join(root, 'root/.npmrc'));
  installNode(join(root, 'opt/node'));
}

/** From npm's packages: nothing of them is on this machine. */
function installNode(folder: string): void {
  mkdirSync(join(folder, 'bin'), { recursive: true });
  run('npm', ['install', '--silent', '--prefix', folder, `node-linux-${process.arch}@${nodeMajor}`, 'npm@10']);
  symlinkSync(`../node_modules/node-linux-${process.arch}/bin/node`, join(folder, 'bin/node'));
  for (const name of ['npm', 'npx']) symlinkSync(`../node_modules/npm/bin/${name}-cli.js`, join(folder, 'bin', name));
}

function removeRoot(root: string): void {
  spawnSync('umount', ['--recursive', '--lazy', root]);
  if (existsSync(join(root, 'proc/self'))) throw new Error(`${root} is still mounted: remove it by hand`);
  rmSync(root, { recursive: true, force: true });
}

/** `npm start` until it serves the catalogue, which it first builds, and the API. */
async function tryStart(root: string): Promise<boolean> {
  const started = performance.now();
  const child = spawn('chroot', inside(root, 'sh', '-c', 'cd /opt/sluice && npm start'), {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  });
  const exited = once(child, 'exit');
  const answers = async (path: string) =>
    (await fetch(`http://127.0.0.1:8080${path}`).catch(() => null))?.status === 200;
  try {
    for (const path of ['/readyz', '/health.txt', '/api/streams.json', '/v1/openapi.json', '/console']) {
      while (!(await answers(path))) {
        if (performance.now() - started > readyWithinMs || child.exitCode !== null) return false;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      console.log(`${path} answers 200 after ${((performance.now() - started) / 1000).toFixed(1)} s`);
    }
    return true;
  } finally {
    process.kill(-child.pid!, 'SIGTERM');
    await exited;
  }
}

if (process.getuid?.() !== 0) {
  console.error('npm run bare makes a Debian of its own, and needs root for that');
  process.exit(2);
}
installMissing(['debootstrap', ...dockerPrograms]);
const wanted = process.argv.slice(2);
const isWanted = (name: string): boolean => wanted.length === 0 || wanted.includes(name);
if (isWanted('image') && !tryImage()) {
  console.log('\nthe image fails on a minimal Debian');
  process.exit(1);
}
if (wanted.length === 1 && isWanted('image')) process.exit(0);
const root = mkdtempSync(join(tmpdir(), 'sluice-bare-'));
let succeeded = true;
try {
  makeRoot(root);
  run('git', ['clone', '--quiet', installDir, join(root, 'opt/sluice')]);
  const inClone = (command: string) => {
    console.log(`\n$ ${command}`);
    return (
      spawnSync('chroot', inside(root, 'sh', '-c', `cd /opt/sluice && ${command}`), { stdio: 'inherit' }).status === 0
    );
  };
  succeeded = inClone('node --version && npm --version') && inClone('npm ci');
  if (succeeded && isWanted('start')) {
    console.log('\n$ npm start');
    succeeded = await tryStart(root);
  }
  if (succeeded && isWanted('test')) succeeded = inClone('npm test');
  console.log(succeeded ? '\nthat works in a bare root' : '\nfailed in a bare root');
} finally {
  removeRoot(root);
}
process.exit(succeeded ? 0 : 1);
