// One event stream per session. It carries no data to the screen: it says what has changed, and what is on the screen is
// read again. After a gap everything is.
import { touch } from './api.ts';
import { Cell } from './cell.ts';
import { isPassing } from './reading.ts';
import { type Client, endsSession } from './session.ts';

/** `off`: the service does not let us follow: the token lacks the scope, or too many do. */
export type LiveState = 'connecting' | 'open' | 'lost' | 'off';

export const live = new Cell<LiveState>('connecting');

const knockMs = 750;

export function followChanges(client: Client): () => void {
  const end = new AbortController();
  live.set('connecting');
  void follow(client, end.signal);
  return () => end.abort();
}

async function follow(client: Client, ended: AbortSignal): Promise<void> {
  while (!ended.aborted) {
    try {
      await followOnce(client, ended);
    } catch (error) {
      if (ended.aborted || endsSession(error)) return;
      if (!isPassing(error as Error)) return live.set('off');
    }
    if (ended.aborted) return;
    live.set('lost');
    await untilServiceAnswers(ended);
  }
}

/** Until the connection is lost. */
async function followOnce(client: Client, ended: AbortSignal): Promise<void> {
  const connection = new AbortController();
  const signal = AbortSignal.any([ended, connection.signal]);
  const onState = (state: 'open' | 'lost') => {
    if (state === 'lost') return connection.abort();
    live.set('open');
    touch();
  };
  for await (const told of client.events.stream({ changes: 'true' }, { signal, onState })) {
    touch(told.project_id ?? undefined, environmentOf(told));
  }
}

function environmentOf(told: object): string | null {
  const { environment, data } = told as { environment?: string | null; data?: { environment?: string } };
  return environment ?? data?.environment ?? null;
}

/** Knocks at a door that needs no token and counts for no limit. */
async function untilServiceAnswers(ended: AbortSignal): Promise<void> {
  while (!ended.aborted) {
    await new Promise((resolve) => setTimeout(resolve, knockMs));
    const answered = await fetch('/readyz', { signal: ended, cache: 'no-store' }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (answered) return;
  }
}
