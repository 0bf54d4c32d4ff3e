import { setTimeout as sleep } from 'node:timers/promises';

/** Throws as soon as the signal says so. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal });
}
