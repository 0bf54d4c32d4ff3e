// Runs on install, a few seconds: builds the console into console/dist, with each text also stored compressed, and the
// client into dist/client, as JavaScript with declarations for projects that use it.
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, gzipSync, constants as zlib } from 'node:zlib';
import { build } from 'vite';
import config from '../console/vite.config.ts';

const at = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

const dist = at('console/dist');
/** Built beside it and put in its place at the end, so that a running service never serves half a console. */
const fresh = `${dist}.${process.pid}`;

await build({
  ...config,
  configFile: false,
  logLevel: 'warn',
  build: { ...config.build, outDir: fresh, emptyOutDir: true },
});
for (const file of globSync(`${fresh}/**/*.{html,js,css,svg}`)) {
  const text = readFileSync(file);
  writeFileSync(`${file}.br`, brotliCompressSync(text, { params: { [zlib.BROTLI_PARAM_QUALITY]: 11 } }));
  writeFileSync(`${file}.gz`, gzipSync(text, { level: 9 }));
}
rmSync(dist, { recursive: true, force: true });
try {
  renameSync(fresh, dist);
} catch (error) {
  // Somebody else has just put the same there.
  if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
} finally {
  rmSync(fresh, { recursive: true, force: true });
}

// TypeScript is not there in an install for production, where nobody imports the client.
const tsc = at('node_modules/.bin/tsc');
if (existsSync(tsc)) execFileSync(tsc, ['-p', at('src/client/tsconfig.json')], { stdio: 'inherit' });
