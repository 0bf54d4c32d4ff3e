// A copy of what the service runs from, for tests that change it while it runs.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

export interface SourceTree {
  main: string;
  program: string;
  /** Replaces a text in a file, which has to be there. */
  edit(path: string, from: string, to: string): void;
  remove(): void;
}

export function copySourceTree(): SourceTree {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-tree-'));
  for (const name of ['src', 'bin', 'package.json']) cpSync(join(root, name), join(dir, name), { recursive: true });
  for (const name of ['node_modules', 'console']) symlinkSync(join(root, name), join(dir, name));
  return {
    main: join(dir, 'bin/start.js'),
    program: join(dir, 'bin/sluice.js'),
    edit(path, from, to) {
      const text = readFileSync(join(dir, path), 'utf8');
      if (!text.includes(from)) throw new Error(`${path} does not hold ${from}`);
      writeFileSync(join(dir, path), text.replace(from, to));
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}
