import { constants } from 'node:os';

let controller: AbortController | null = null;

/**
 * Aborted by the first SIGINT or SIGTERM. Listening begins with the first call, so that a signal ends
 * commands that never call it, as it ends any process; a second signal ends the process at once.
 */
export function interruption(): AbortSignal {
  if (controller) return controller.signal;
  const made = new AbortController();
  controller = made;
  const onSignal = (signal: 'SIGINT' | 'SIGTERM') => {
    if (made.signal.aborted) process.exit(128 + constants.signals[signal]);
    made.abort(signal);
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return made.signal;
}
