// How processes that share a PostgreSQL talk to each other: a connection for this alone, so that a message waits for nothing
// else; made anew when it is lost. What is said while it is lost is not heard.
import type pg from 'pg';

const comeBackAfterMs = 1000;

export interface Line {
  say(message: string): Promise<void>;
  stop(): Promise<void>;
}

/** `heard` is called for each message, also one's own, and with null whenever some may have been missed. */
export function openLine(databaseUrl: string, channel: string, heard: (message: string | null) => void): Line {
  let stopped = false;
  let client: pg.Client | null = null;
  let listening: pg.Client | null = null;
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
      listening = null;
      if (!stopped) timer = setTimeout(connect, comeBackAfterMs);
    };
    fresh.on('error', lost);
    fresh.on('end', lost);
    fresh.on('notification', ({ payload }) => heard(payload ?? ''));
    try {
      await fresh.connect();
      await fresh.query(`listen ${channel}`);
      listening = fresh;
      heard(null);
    } catch {
      lost();
    }
  };
  void connect();
  return {
    async say(message) {
      await listening?.query({ name: 'say', text: 'select pg_notify($1, $2)', values: [channel, message] });
    },
    async stop() {
      stopped = true;
      if (timer) clearTimeout(timer);
      await client?.end().catch(() => {});
    },
  };
}
