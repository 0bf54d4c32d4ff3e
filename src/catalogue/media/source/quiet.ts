// A file that is still being copied looks like a video that ends early. So a source that was written to a moment ago is
// watched until it has kept still for a while.
import type { FileHandle } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { CatalogueError } from '../../fault.ts';
import { stampOpen } from './source-file.ts';

export interface Patience {
  /** How long a file must not have changed. */
  quietMs: number;
  /** How long to wait for that. */
  longestMs: number;
}

export const usualPatience: Patience = { quietMs: 2000, longestMs: 60_000 };

interface Waiting {
  patience: Patience;
  signal?: AbortSignal | undefined;
  /** Told once, where there is something to wait for. */
  onWait?: (text: string) => void;
}

const POLL_MS = 100;

/** Returns when the open file has not changed for a while; the clock of the machine only decides whether to look closer. */
export async function waitUntilQuiet(path: string, file: FileHandle, waiting: Waiting): Promise<void> {
  const { quietMs, longestMs } = waiting.patience;
  let last = await stampOpen(path, file);
  if (Math.abs(Date.now() - last.writtenMs) >= quietMs) return;
  waiting.onWait?.(`${path} was written to a moment ago; waiting until it is complete`);
  const startedMs = performance.now();
  let stillSinceMs = startedMs;
  while (performance.now() - stillSinceMs < quietMs) {
    if (performance.now() - startedMs > longestMs)
      throw new CatalogueError(`${path} is still being written; build again when it is complete`);
    await sleep(Math.min(POLL_MS, quietMs), undefined, { signal: waiting.signal });
    const now = await stampOpen(path, file);
    if (now.stamp !== last.stamp) stillSinceMs = performance.now();
    last = now;
  }
}
