// What lies in the data directory beside the database: the secret key, the admin token, and where the
// service listens.
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from './lib/start-error.ts';

export function makeDataDir(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartError(`SLUICE_DATA_DIR ${dir} cannot be made: ${(error as Error).message}`);
  }
}

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
