import { join } from 'node:path';
import { makeDataDir } from '../data-dir.ts';
import { type ProcessLock, takeProcessLock } from '../lib/process-lock.ts';
import { StartError } from '../lib/start-error.ts';

/**
 * A data directory is for one service, on PostgreSQL too: what its router workers, its HAProxy and `sluice reload` meet at
 * lies in it. The lock ends with this process.
 */
export function lockForService(dataDir: string): ProcessLock {
  makeDataDir(dataDir);
  const lock = takeProcessLock(join(dataDir, 'service.lock'));
  if (lock) return lock;
  throw new StartError(
    `Another Sluice runs on ${dataDir}. Stop it, or choose another SLUICE_DATA_DIR: each service needs its own. Several can ` +
      'share a PostgreSQL (SLUICE_DATABASE_URL), with the same SLUICE_SECRET_KEY.',
  );
}
