// A lock between processes. It is one of SQLite's own, so it ends with the process that holds it, however that ends.
import { DatabaseSync } from 'node:sqlite';
import { keepPrivate } from './private-files.ts';

export interface ProcessLock {
  release(): void;
}

const sqliteBusy = 5;

/** null: another process holds it. Throws where the disk does not let anyone take it. */
export function takeProcessLock(path: string): ProcessLock | null {
  keepPrivate(path);
  const lock = new DatabaseSync(path, { timeout: 0 });
  try {
    lock.exec('pragma journal_mode = delete; pragma locking_mode = exclusive; begin exclusive');
  } catch (error) {
    lock.close();
    if ((error as { errcode?: number }).errcode === sqliteBusy) return null;
    throw error;
  }
  return { release: () => lock.close() };
}
