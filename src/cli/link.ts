// What a folder remembers of `sluice link`: its project and, if named, its environment. The file is found from the folders
// below it, too, and may be committed. It names no service: where a token goes is never decided by a folder.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { CliError, exit, type Io } from './io.ts';

export const linkFile = '.sluice.json';

export interface Link {
  project: string;
  environment: string | null;
}

export interface FoundLink extends Link {
  path: string;
}

const isName = (value: unknown): value is string => typeof value === 'string' && /^[\w-]{1,64}$/.test(value);

export function findLink({ cwd }: Pick<Io, 'cwd'>): FoundLink | null {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const path = join(folder, linkFile);
    if (existsSync(path)) return readLink(path);
    if (folder === dirname(folder)) return null;
  }
}

function readLink(path: string): FoundLink {
  let content: Partial<Record<keyof Link, unknown>> | null = null;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch {}
  const { project, environment = null } = content ?? {};
  if (!isName(project) || (environment !== null && !isName(environment)))
    throw new CliError(exit.settings, `${path} is not what sluice link writes.`, 'Write it again: sluice link PROJECT');
  return { project, environment, path };
}
