// Waits for a deployment by polling it, also while the service restarts.
import { SluiceError } from './error.ts';
import { pause } from './pause.ts';
import type { Deployment } from './types.ts';

export interface WaitOptions {
  /** Resolve as soon as this returns true; default: when the deployment has ended, successfully or not. */
  until?: (deployment: Deployment) => boolean;
  /** Called with the first response and after each change. */
  onChange?: (deployment: Deployment) => void;
  signal?: AbortSignal;
  /** Default: no limit. */
  timeoutMs?: number;
  /** Time between two requests; default 1000. */
  intervalMs?: number;
}

type Read = (signal: AbortSignal) => Promise<Deployment>;

/** How long the service may be unreachable before waiting fails. */
const maxAwayMs = 120_000;

const isAway = (error: unknown): boolean =>
  error instanceof SluiceError &&
  (error.code === 'network' || error.code === 'timeout' || error.status === 429 || error.status >= 500);

export async function waitFor(id: string, read: Read, options: WaitOptions): Promise<Deployment> {
  const { signal, timeoutMs } = options;
  const deadline = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
  const seen: Seen = { state: '', text: '' };
  try {
    const signals = [signal, deadline].filter((each) => each !== undefined);
    return await pollUntil(read, options, seen, AbortSignal.any(signals));
  } catch (error) {
    if (!deadline?.aborted || signal?.aborted) throw error;
    const last = seen.state === '' ? 'no answer about' : `still ${seen.state}:`;
    const message = `${last} deployment ${id} after ${timeoutMs} ms`;
    throw new SluiceError({ code: 'timeout', message, cause: error });
  }
}

interface Seen {
  state: string;
  text: string;
}

async function pollUntil(read: Read, options: WaitOptions, seen: Seen, signal: AbortSignal): Promise<Deployment> {
  const { until = () => false, onChange, intervalMs = 1000 } = options;
  let answeredAt = Date.now();
  for (;;) {
    const deployment = await read(signal).catch((error) => {
      if (isAway(error) && Date.now() - answeredAt < maxAwayMs) return null;
      throw error;
    });
    if (deployment !== null) {
      answeredAt = Date.now();
      const text = JSON.stringify(deployment);
      if (text !== seen.text) onChange?.(deployment);
      Object.assign(seen, { state: deployment.state, text });
      if (deployment.finished_at !== null || until(deployment)) return deployment;
    }
    await pause(intervalMs, signal);
  }
}
