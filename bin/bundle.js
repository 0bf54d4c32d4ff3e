// The bundle that the service and the command line run from: dist/service in a checkout, made by the install and made again
// first where the sources have changed since, so that what runs is what is there; dist/package in what `npm pack` packs.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const builtHere = join(root, 'dist/service');
const stampFile = join(root, 'dist/service.stamp');

/** Of the sources as they are now: how many, and when one of them last changed. null: this install has none. */
export function sourceStamp() {
  const source = join(root, 'src');
  if (!existsSync(join(source, 'main.ts'))) return null;
  let newest = 0;
  let count = 0;
  for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
    if (!entry.name.endsWith('.ts') || entry.name.endsWith('.test.ts')) continue;
    newest = Math.max(newest, statSync(join(entry.parentPath, entry.name)).mtimeMs);
    count++;
  }
  return `${count} files, last changed ${new Date(newest).toISOString()}\n`;
}

export function writeStamp(stamp) {
  mkdirSync(join(root, 'dist'), { recursive: true });
  writeFileSync(stampFile, stamp);
}

/** Whether the bundle is of the sources as they are; an install without sources has no other. */
export function isCurrent() {
  const stamp = sourceStamp();
  if (stamp === null) return true;
  try {
    return readFileSync(stampFile, 'utf8') === stamp;
  } catch {
    return false;
  }
}

/** Runs an entry of the bundle in this process. */
export async function runBundled(name) {
  if (!isCurrent()) {
    process.stderr.write('sluice: the sources have changed since they were bundled: bundling them\n');
    const built = spawnSync(process.execPath, [join(root, 'scripts/build.ts'), 'service'], { stdio: ['ignore', 2, 2] });
    if (built.status !== 0) {
      process.stderr.write('sluice: they cannot be bundled here. Run: npm run build\n');
      process.exit(1);
    }
  }
  const bundle = existsSync(builtHere) ? builtHere : join(root, 'dist/package');
  enableCompileCache(join(bundle, 'compiled'));
  await import(pathToFileURL(join(bundle, `${name}.js`)).href);
}
