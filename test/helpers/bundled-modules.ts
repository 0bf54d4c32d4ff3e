// Preloaded into every test process of a run of all tests (scripts/test.ts): what tests import from src/ comes from the
// bundle of all modules, which takes a third of the time to load.
import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '../..');
const bundled = process.env.SLUICE_TEST_MODULES;

function bundledFile(url: string): string | null {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return null;
  const source = relative(root, fileURLToPath(url));
  const file = join(bundled!, `${source.slice(0, -'.ts'.length)}.js`);
  return source.startsWith('src/') && existsSync(file) ? pathToFileURL(file).href : null;
}

if (bundled) {
  registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      const url = bundledFile(resolved.url);
      return url === null ? resolved : { ...resolved, url, format: 'module' };
    },
  });
  // Failures name the sources.
  await import('../../src/lib/source-stacks.ts');
}
