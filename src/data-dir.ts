// What lies in the data directory beside the database: the secret key, the admin token, and where the
// service listens.
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { isOpenToOthers, keepPrivate } from './lib/private-files.ts';
import { StartError } from './lib/start-error.ts';

export function makeDataDir(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartError(`SLUICE_DATA_DIR ${dir} cannot be made: ${(error as Error).message}`);
  }
  closeToOthers(dir);
  for (const name of ['secret.key', 'admin-token']) if (existsSync(join(dir, name))) keepPrivate(join(dir, name));
}

/** A data directory is for one service, on PostgreSQL too. */
export const dataDirInUse = (dir: string): StartError =>
  new StartError(
    `Another Sluice runs on ${dir}. Stop it, or choose another SLUICE_DATA_DIR: each service needs its own. Several can ` +
      'share a PostgreSQL (SLUICE_DATABASE_URL), with the same SLUICE_SECRET_KEY.',
  );

/** A directory that holds nothing else is closed to other users; one that others may need as it is, is refused. */
function closeToOthers(dir: string): void {
  const { mode } = statSync(dir);
  if (!isOpenToOthers(mode)) return;
  const shown = `SLUICE_DATA_DIR ${dir} is open to other users (mode ${(mode & 0o7777).toString(8)})`;
  const names = readdirSync(dir);
  if (names.length > 0 && !names.some((name) => ownNames.has(name))) {
    throw new StartError(`${shown} and holds other files. Choose a directory of its own, or run: chmod 700 ${dir}`);
  }
  try {
    chmodSync(dir, 0o700);
  } catch {
    throw new StartError(`${shown} and belongs to another user. As its owner, run: chmod 700 ${dir}`);
  }
}

/** By one of these, a directory is known for one that a service made or used before. */
const ownNames = new Set([
  'sluice.db',
  'secret.key',
  'admin-token',
  'process.lock',
  'address',
  'routing',
  'catalogue',
  'logs',
]);

/** Writes a file that only its owner can read; fails if it is there already. */
export function writeSecretFile(path: string, content: string): void {
  writeFileSync(path, content, { mode: 0o600, flag: 'wx', flush: true });
  chmodSync(path, 0o600);
}

export function readOrMakeSecretKey(dir: string): Buffer {
  const path = join(dir, 'secret.key');
  if (!existsSync(path)) writeSecretFile(path, `${randomBytes(32).toString('base64')}\n`);
  const key = Buffer.from(readFileSync(path, 'utf8').trim(), 'base64');
  if (key.length !== 32) throw new StartError(`${path} does not hold a key of 32 bytes in base64`);
  return key;
}

export const adminTokenPath = (dir: string): string => join(dir, 'admin-token');

export function readAdminToken(dir: string): string | null {
  const path = adminTokenPath(dir);
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : null;
}

/** Tells the command line on this machine where the service is. Forgetting leaves what another process has written. */
export function recordAddress(dir: string, url: string): { forget(): void } {
  const path = join(dir, 'address');
  const fresh = `${path}.${process.pid}`;
  writeFileSync(fresh, `${url}\n`, { mode: 0o600 });
  renameSync(fresh, path);
  return {
    forget() {
      if (existsSync(path) && readFileSync(path, 'utf8').trim() === url) rmSync(path);
    },
  };
}
