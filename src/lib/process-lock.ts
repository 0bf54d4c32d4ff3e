// A lock between processes. It is one of SQLite's own, so it ends with the process that holds it, however that ends.
import { DatabaseSync } from 'node:sqlite';
import { keepPrivate } from './private-files.ts';

export interface ProcessLock {
  release(): void;
}

/** null: another process holds it. */
export function takeProcessLock(path: string): ProcessLock | null {
  keepPrivate(path);
  const lock = new DatabaseSync(path, { timeout: 0 });
  try {
    lock.exec('pragma journal_mode = delete; pragma locking_mode = exclusive; begin exclusive');
  } catch {
    lock.close();
    return null;
  }
  return { release: () => lock.close() };
}
