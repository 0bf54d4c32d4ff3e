import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CatalogueError } from './fault.ts';
import type { SitePaths } from './site-paths.ts';

/**
 * Runs a task while no other process builds or withdraws in the same site. The operating system holds the lock, taken
 * through SQLite: it cannot outlive the process, so a crash leaves no stale lock to clear.
 */
export async function whileLocked<T>(paths: SitePaths, task: () => Promise<T>): Promise<T> {
  mkdirSync(paths.state, { recursive: true });
  const lock = new DatabaseSync(join(paths.state, 'lock'));
  try {
    try {
      lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    } catch (error) {
      if (!(error as Error).message.includes('locked')) throw error;
      throw new CatalogueError(`another command is at work on ${paths.site}; wait until it has ended`);
    }
    return await task();
  } finally {
    lock.close();
  }
}
