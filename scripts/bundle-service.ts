// Bundles the service and the command line into dist/service: a start loads some fifty files instead of 1,600. Each build
// has a folder of its own, which dist/service points to: processes that run from an older one still find the parts that
// they load later.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { build, type Plugin } from 'rolldown';
import { entries, installDir } from '../src/lib/install.ts';

const dist = join(installDir, 'dist');
const current = join(dist, 'service');
/** The one in use, and the one that a running service may still be using. */
const keptBuilds = 2;

/** What dockerode loads for builds and for SSH, neither of which the service uses: three quarters of its size. */
const unused = ['ssh2', '@grpc/grpc-js', '@grpc/proto-loader', 'protobufjs'];

const leaveOut: Plugin = {
  name: 'leave-out',
  resolveId: (source) => (unused.includes(source) ? { id: `\0${source}` } : null),
  load: (id) => (unused.includes(id.slice(1)) ? 'module.exports = {};' : null),
};

export async function bundleService(): Promise<void> {
  mkdirSync(dist, { recursive: true });
  const folder = mkdtempSync(join(dist, 'new-service-'));
  chmodSync(folder, 0o755); // the service may run as another user
  try {
    await build({
      input: Object.fromEntries(Object.entries(entries).map(([name, source]) => [name, join(installDir, source)])),
      platform: 'node',
      cwd: installDir,
      plugins: [leaveOut],
      // Found at run time where they are installed, or not at all.
      external: [/^node:/, '@ffmpeg-installer/ffmpeg', 'pg-native', 'cpu-features', /\.node$/],
      logLevel: 'warn',
      output: { dir: folder, format: 'esm', sourcemap: true, chunkFileNames: '[name]-[hash].js' },
    });
    putInPlace(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function putInPlace(folder: string): void {
  const hash = createHash('sha256');
  for (const name of readdirSync(folder).sort()) hash.update(name).update(readFileSync(join(folder, name)));
  const name = `service-${hash.digest('hex').slice(0, 16)}`;
  try {
    renameSync(folder, join(dist, name));
  } catch (error) {
    // The same is there already.
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
  const link = `${folder}.link`;
  symlinkSync(name, link);
  renameSync(link, current);
  removeOld();
}

function removeOld(): void {
  const inUse = readlinkSync(current);
  const changedMs = (name: string) => statSync(join(dist, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const others = readdirSync(dist)
    .filter((name) => /^service-[0-9a-f]{16}$/.test(name) && name !== inUse)
    .sort((a, b) => changedMs(b) - changedMs(a));
  for (const name of others.slice(keptBuilds - 1)) rmSync(join(dist, name), { recursive: true, force: true });
}
