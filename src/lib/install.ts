// Where the files of this install are. The service runs from the bundle in dist/service, or straight from src/: both are
// two folders below the root of the install, and every chunk of the bundle lies directly in its folder.
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

export const entryPath = (name: keyof typeof entries): string =>
  join(installDir, runsFromSource ? entries[name] : `dist/service/${name}.js`);
