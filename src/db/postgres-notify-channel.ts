// A separate connection for LISTEN and NOTIFY, so that notifications do not wait for other statements. A probe, which is a
// notification to itself, checks it every two seconds: a connection on which the probe does not arrive is replaced.
// Notifications that were sent in the meantime are lost.
import { randomBytes } from 'node:crypto';
import type { Log } from '../lib/log.ts';
import type { Loop, Loops } from '../lib/loops.ts';
import { isUnavailable } from './database-errors.ts';
import type { Client } from './postgres-client.ts';

const probeEveryMs = 2000;
const arrivesWithinMs = 5000;
const stuckAfterMs = 60_000;

export interface NotifyChannel {
  send(payloads: string[]): Promise<void>;
  stop(): Promise<void>;
}

interface ChannelParts {
  databaseUrl: string;
  channel: string;
  loops: Loops;
  log: Log;
  /** Gets this process's own payloads too, and null after every (re)connect: some may have been missed. */
  onPayload(payload: string | null): void;
}

interface Listener {
  client: Client;
  /** One after another: a connection takes one statement at a time. */
  query(query: { name?: string; text: string; values?: unknown[] }): Promise<unknown>;
  /** Resolves when a notification to this connection itself has arrived. */
  probe(): Promise<void>;
}

export function openNotifyChannel(parts: ChannelParts): NotifyChannel {
  const { channel, loops, log, onPayload } = parts;
  let stopped = false;
  let listener: Listener | null = null;

  const connect = async () => {
    const opened = await openListener(parts, (client) => {
      if (listener?.client !== client) return;
      listener = null;
      if (!stopped) loop.wake();
    });
    if (stopped) return opened.client.end();
    listener = opened;
    onPayload(null);
  };
  const step = async () => {
    try {
      if (!listener) await connect();
      await listener?.probe();
    } catch (error) {
      await listener?.client.end();
      listener = null;
      if (!isUnavailable(error)) throw error;
      log.debug({ err: error }, 'notifications of other processes do not arrive');
    }
  };
  const loop: Loop = loops.start({ name: 'signals', intervalMs: probeEveryMs, limitMs: stuckAfterMs, step });
  return {
    async send(payloads) {
      const text = 'select pg_notify($1, payload) from unnest($2::text[]) as payload';
      await listener?.query({ name: 'notify', text, values: [channel, payloads] });
    },
    async stop() {
      stopped = true;
      await listener?.client.end();
      await loop.stop();
    },
  };
}

async function openListener(
  { databaseUrl, channel, onPayload }: ChannelParts,
  onLost: (client: Client) => void,
): Promise<Listener> {
  // Imported here so that a start on SQLite does not load it.
  const { connectOnce } = await import('./postgres-client.ts');
  const ownChannel = `sluice_${randomBytes(8).toString('hex')}`;
  const client = await connectOnce(databaseUrl);
  let onOwn: (() => void) | null = null;
  client.on('end', () => onLost(client));
  client.on('notification', ({ channel: name, payload }) => {
    if (name === ownChannel) onOwn?.();
    else onPayload(payload ?? '');
  });
  let last: Promise<unknown> = Promise.resolve();
  const query: Listener['query'] = (statement) => {
    const result = last.then(() => client.query(statement));
    last = result.catch(() => {});
    return result;
  };
  try {
    await query({ text: `listen ${channel}` });
    await query({ text: `listen ${ownChannel}` });
  } catch (error) {
    await client.end();
    throw error;
  }
  return {
    client,
    query,
    async probe() {
      const { promise: arrived, resolve } = Promise.withResolvers<void>();
      onOwn = resolve;
      await query({ name: 'probe', text: `select pg_notify($1, '')`, values: [ownChannel] });
      await within(arrived, arrivesWithinMs);
    },
  };
}

function within(work: Promise<void>, limitMs: number): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new Error('notifications do not arrive: is there a pooler in front of the database?')),
    limitMs,
  );
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
