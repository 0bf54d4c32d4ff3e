// What other processes tell each other through PostgreSQL: a connection of its own that only listens, made anew when it
// is lost.
import type pg from 'pg';

const comeBackAfterMs = 1000;

export interface Listener {
  stop(): Promise<void>;
}

/** `heard` is called for each message, and with null whenever some may have been missed. */
export function listen(databaseUrl: string, channel: string, heard: (message: string | null) => void): Listener {
  let stopped = false;
  let client: pg.Client | null = null;
  let timer: NodeJS.Timeout | null = null;

  const connect = async () => {
    // Loaded only where it is used, as the pool is.
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
      if (!stopped) timer = setTimeout(connect, comeBackAfterMs);
    };
    fresh.on('error', lost);
    fresh.on('end', lost);
    fresh.on('notification', ({ payload }) => heard(payload ?? ''));
    try {
      await fresh.connect();
      await fresh.query(`listen ${channel}`);
      heard(null);
    } catch {
      lost();
    }
  };
  void connect();
  return {
    async stop() {
      stopped = true;
      if (timer) clearTimeout(timer);
      await client?.end().catch(() => {});
    },
  };
}
