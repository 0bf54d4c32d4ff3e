// Waiting for a deployment: it is looked at again and again, also while the service restarts.
import { SluiceError } from './error.ts';
import { pause } from './pause.ts';
import type { Deployment } from './types.ts';

export interface WaitOptions {
  /** Resolve as soon as this is true; default: when the deployment has ended, however it ended. */
  until?: (deployment: Deployment) => boolean;
  /** Called with the first look and after each change. */
  onChange?: (deployment: Deployment) => void;
  signal?: AbortSignal;
  /** Default: as long as it takes. */
  timeoutMs?: number;
  /** Between two looks; default 1000. */
  intervalMs?: number;
}

export type Look = (signal: AbortSignal) => Promise<Deployment>;

/** How long the service may be away before waiting for it counts as vain. */
const patienceMs = 120_000;

const isAway = (error: unknown): boolean =>
  error instanceof SluiceError &&
  (error.code === 'network' || error.code === 'timeout' || error.status === 429 || error.status >= 500);

export async function waitFor(id: string, look: Look, options: WaitOptions): Promise<Deployment> {
  const { signal, timeoutMs } = options;
  const deadline = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
  const seen: Seen = { state: '', text: '' };
  try {
    const signals = [signal, deadline].filter((each) => each !== undefined);
    return await lookUntil(look, options, seen, AbortSignal.any(signals));
  } catch (error) {
    if (!deadline?.aborted || signal?.aborted) throw error;
    const heard = seen.state === '' ? 'no answer about' : `still ${seen.state}:`;
    const message = `${heard} deployment ${id} after ${timeoutMs} ms`;
    throw new SluiceError({ code: 'timeout', message, cause: error });
  }
}

interface Seen {
  state: string;
  text: string;
}

async function lookUntil(look: Look, options: WaitOptions, seen: Seen, signal: AbortSignal): Promise<Deployment> {
  const { until = () => false, onChange, intervalMs = 1000 } = options;
  let answeredAt = Date.now();
  for (;;) {
    const deployment = await look(signal).catch((error) => {
      if (isAway(error) && Date.now() - answeredAt < patienceMs) return null;
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
