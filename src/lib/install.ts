// Where the files of this install are. The service runs from the bundle in dist/service (in a package: dist/package), or
// straight from src/: each is two folders below the root of the install, and every chunk of a bundle lies directly in its
// folder.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const installDir = fileURLToPath(new URL('../../', import.meta.url));

const runsFromSource = import.meta.filename.endsWith('.ts');

/** What runs as a process or a thread of its own: its name in the bundle, and its source. */
export const entries = {
  supervisor: 'src/main.ts',
  control: 'src/control.ts',
  'router-worker': 'src/traffic/worker/main.ts',
  standin: 'src/engines/standin/main.ts',
  'log-scanner': 'src/logs/read/scan-worker.ts',
  cli: 'src/cli/main.ts',
} as const;

/** Of a package: its bundle, and what it takes from other packages as files. */
export const packedDir = join(installDir, 'dist/package');

export function entryPath(name: keyof typeof entries): string {
  if (runsFromSource) return join(installDir, entries[name]);
  const builtHere = join(installDir, 'dist/service');
  return join(existsSync(builtHere) ? builtHere : packedDir, `${name}.js`);
}
