// Files that only their owner may read, whatever the umask is and however they were made before.
import { chmodSync, closeSync, existsSync, openSync, statSync } from 'node:fs';

/** Whether users other than the owner have any right. */
export const isOpen = (mode: number): boolean => (mode & 0o077) !== 0;

/** Makes the file if there is none. */
export function keepPrivate(path: string): void {
  closeSync(openSync(path, 'a', 0o600));
  closeToOthers(path);
}

/** SQLite gives the files beside a database the mode of the database; those of an earlier start are as they were. */
export function keepDatabasePrivate(path: string): void {
  keepPrivate(path);
  for (const suffix of ['-wal', '-shm', '-journal']) if (existsSync(path + suffix)) closeToOthers(path + suffix);
}

function closeToOthers(path: string): void {
  if (isOpen(statSync(path).mode)) chmodSync(path, 0o600);
}
