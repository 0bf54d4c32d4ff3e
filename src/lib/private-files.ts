// Files and sockets that only their owner may use, whatever the umask is and however they were made before.

import { createHash } from 'node:crypto';
import { chmodSync, closeSync, existsSync, lstatSync, mkdirSync, openSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Whether users other than the owner have any right. */
export const isOpenToOthers = (mode: number): boolean => (mode & 0o077) !== 0;

/** Creates the file if there is none. */
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
  if (isOpenToOthers(statSync(path).mode)) chmodSync(path, 0o600);
}

/** Leaves room for the name under which a socket is opened before it is renamed. */
const maxSocketPathBytes = 90;

/**
 * The path of a unix socket that belongs to a folder. Such a path has 107 bytes at most, so for a folder with a long path the
 * socket is in a short one, which only this user can enter. Creates the folder of the socket.
 */
export function socketPathIn(folder: string, name: string): string {
  const path = join(folder, name);
  if (Buffer.byteLength(path) <= maxSocketPathBytes) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return path;
  }
  const digest = createHash('sha256').update(folder).digest('hex').slice(0, 12);
  const short = join(tmpdir(), `sluice-${process.getuid?.() ?? 0}-${digest}`);
  mkdirSync(short, { recursive: true, mode: 0o700 });
  const found = lstatSync(short);
  if (!found.isDirectory() || found.uid !== (process.getuid?.() ?? found.uid)) {
    throw new Error(`${short} is not a directory of this user`);
  }
  chmodSync(short, 0o700);
  return join(short, name);
}
