// One event stream per session. The stream carries no data to the screen: it says what has changed, and what is shown is
// read again. After a gap in the stream everything shown is.
import { Cell } from './cell.ts';
import { isTransient } from './errors.ts';
import { invalidate } from './read-cache.ts';
import { type Client, endsSession } from './session.ts';

/** `off`: the service refuses the stream, because the token lacks the scope or too many clients follow. */
type LiveState = 'connecting' | 'open' | 'lost' | 'off';

export const live = new Cell<LiveState>('connecting');

const pollMs = 750;

export function followChanges(client: Client): () => void {
  const stop = new AbortController();
  live.set('connecting');
  void follow(client, stop.signal);
  return () => stop.abort();
}

async function follow(client: Client, stopped: AbortSignal): Promise<void> {
  while (!stopped.aborted) {
    try {
      await followOnce(client, stopped);
    } catch (error) {
      if (stopped.aborted || endsSession(error)) return;
      if (!isTransient(error as Error)) return live.set('off');
    }
    if (stopped.aborted) return;
    live.set('lost');
    await pollUntilReady(stopped);
  }
}

/** Returns when the connection is lost. */
async function followOnce(client: Client, stopped: AbortSignal): Promise<void> {
  const connection = new AbortController();
  const signal = AbortSignal.any([stopped, connection.signal]);
  const onState = (state: 'open' | 'lost') => {
    if (state === 'lost') return connection.abort();
    live.set('open');
    invalidate();
  };
  for await (const change of client.events.stream({ changes: 'true' }, { signal, onState })) {
    invalidate(change.project_id ?? undefined, environmentOf(change));
  }
}

function environmentOf(change: object): string | null {
  const { environment, data } = change as { environment?: string | null; data?: { environment?: string } };
  return environment ?? data?.environment ?? null;
}

/** `/readyz` needs no token and does not count against the rate limit. */
async function pollUntilReady(stopped: AbortSignal): Promise<void> {
  while (!stopped.aborted) {
    await new Promise((resolve) => setTimeout(resolve, pollMs));
    const isReady = await fetch('/readyz', { signal: stopped, cache: 'no-store' }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) return;
  }
}
