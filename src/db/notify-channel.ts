// A separate connection for LISTEN and NOTIFY, so that notifications do not wait for other statements. It reconnects when
// it is lost; notifications that were sent in the meantime are lost.
import type pg from 'pg';

const reconnectAfterMs = 1000;

export interface NotifyChannel {
  send(payloads: string[]): Promise<void>;
  stop(): Promise<void>;
}

/** `onPayload` also gets this process's own payloads, and null after every (re)connect: some may have been missed. */
export function openNotifyChannel(
  databaseUrl: string,
  channel: string,
  onPayload: (payload: string | null) => void,
): NotifyChannel {
  let stopped = false;
  let client: pg.Client | null = null;
  let listening: pg.Client | null = null;
  let timer: NodeJS.Timeout | null = null;

  const connect = async () => {
    // Imported here so that a start on SQLite does not load it.
    const { default: postgres } = await import('pg');
    if (stopped) return;
    const fresh = new postgres.Client({
      connectionString: databaseUrl,
      keepAlive: true,
      connectionTimeoutMillis: 5000,
    });
    client = fresh;
    const lost = () => {
      if (client !== fresh) return;
      client = null;
      listening = null;
      if (!stopped) timer = setTimeout(connect, reconnectAfterMs);
    };
    fresh.on('error', lost);
    fresh.on('end', lost);
    fresh.on('notification', ({ payload }) => onPayload(payload ?? ''));
    try {
      await fresh.connect();
      await fresh.query(`listen ${channel}`);
      listening = fresh;
      onPayload(null);
    } catch {
      lost();
    }
  };
  void connect();
  return {
    async send(payloads) {
      const text = 'select pg_notify($1, payload) from unnest($2::text[]) as payload';
      await listening?.query({ name: 'notify', text, values: [channel, payloads] });
    },
    async stop() {
      stopped = true;
      if (timer) clearTimeout(timer);
      await client?.end().catch(() => {});
    },
  };
}
