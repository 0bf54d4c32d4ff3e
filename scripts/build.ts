// npm run build [-- console|service|client|package|samples …]. The install builds the first three, in a few seconds: the
// console into console/dist, with each text also stored compressed; the service into dist/service; and the client into
// dist/client, as JavaScript with declarations for projects that use it. `npm pack` also makes dist/package of it, as it is
// packed. The samples are part of the sources.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync, constants as zlib } from 'node:zlib';
import { isCurrent, sourceStamp, writeStamp } from '../bin/bundle.js';
import { installDir } from '../src/lib/install.ts';

async function buildConsole(): Promise<void> {
  const { build } = await import('vite');
  const { default: config } = await import('../console/vite.config.ts');
  const dist = join(installDir, 'console/dist');
  // Built beside it and put in its place at the end, so that a running service never serves half a console.
  const folder = `${dist}.${process.pid}`;
  await build({
    ...config,
    configFile: false,
    logLevel: 'warn',
    build: { ...config.build, outDir: folder, emptyOutDir: true },
  });
  for (const file of globSync(`${folder}/**/*.{html,js,css,svg}`)) {
    const text = readFileSync(file);
    writeFileSync(`${file}.br`, brotliCompressSync(text, { params: { [zlib.BROTLI_PARAM_QUALITY]: 11 } }));
    writeFileSync(`${file}.gz`, gzipSync(text, { level: 9 }));
  }
  rmSync(dist, { recursive: true, force: true });
  try {
    renameSync(folder, dist);
  } catch (error) {
    // Another build has just put the same there.
    if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function buildService(): Promise<void> {
  const { bundleService } = await import('./bundle-service.ts');
  const stamp = sourceStamp();
  await bundleService();
  if (stamp !== null) writeStamp(stamp);
}

async function buildClient(): Promise<void> {
  const tsc = join(installDir, 'node_modules/.bin/tsc');
  execFileSync(tsc, ['-p', join(installDir, 'src/client/tsconfig.json')], { stdio: 'inherit' });
}

async function buildPackage(): Promise<void> {
  if (!isCurrent()) await buildService();
  const { packService } = await import('./bundle-service.ts');
  packService();
}

async function buildSamples(): Promise<void> {
  await (await import('./sample-streams.ts')).buildSamples();
}

const parts = {
  console: buildConsole,
  service: buildService,
  client: buildClient,
  package: buildPackage,
  samples: buildSamples,
};
const builtByInstall = ['console', 'service', 'client'];
const chosen = process.argv.length > 2 ? process.argv.slice(2) : builtByInstall;
for (const [name, build] of Object.entries(parts)) if (chosen.includes(name)) await build();
