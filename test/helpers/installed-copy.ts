// A copy of what the service runs from, for tests that replace it while it runs, as an upgrade does.
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const copied = ['bin', 'package.json', 'src/cli/overview.txt', 'src/catalogue/gallery'];

export interface InstalledCopy {
  main: string;
  program: string;
  /** Puts a new bundle in place, in which a text that is in the present one is replaced. */
  upgrade(from: string | RegExp, to: string): void;
  remove(): void;
}

export function copyInstall(): InstalledCopy {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-install-'));
  for (const name of copied) cpSync(join(root, name), join(dir, name), { recursive: true });
  for (const name of ['node_modules', 'console']) symlinkSync(join(root, name), join(dir, name));
  const bundle = join(dir, 'dist/service');
  let builds = 0;
  /** A folder of its own for each build, as scripts/bundle-service.ts makes them. */
  const put = (source: string, change: (folder: string) => void) => {
    const name = `service-${++builds}`;
    const isCode = (path: string) => !path.endsWith('.map') && !path.includes('compiled');
    cpSync(source, join(dir, 'dist', name), { recursive: true, dereference: true, filter: isCode });
    change(join(dir, 'dist', name));
    symlinkSync(name, `${bundle}.new`);
    renameSync(`${bundle}.new`, bundle);
  };
  put(join(root, 'dist/service'), () => {});
  return {
    main: join(dir, 'bin/start.js'),
    program: join(dir, 'bin/sluice.js'),
    upgrade: (from, to) => put(bundle, (folder) => replaceIn(folder, from, to)),
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}

function replaceIn(folder: string, from: string | RegExp, to: string): void {
  let found = false;
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.js'))) {
    const text = readFileSync(join(folder, name), 'utf8');
    const changed = text.replace(from, to);
    if (changed === text) continue;
    writeFileSync(join(folder, name), changed);
    found = true;
  }
  if (!found) throw new Error(`the bundle does not hold ${from}`);
}
