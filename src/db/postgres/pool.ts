import type { PostgresPool } from 'kysely';
import pg from 'pg';
import { Client, type ConnectionOptions, clientOptions } from './client.ts';
import { PlanKeepingClient } from './plan-keeping-client.ts';
import { isPooled } from './url.ts';

interface PoolOptions extends ConnectionOptions {
  onConnectionLost: (error: Error) => void;
  max?: number;
  /** Not used behind a PgBouncer in transaction mode, where the server keeps no plans. */
  KeepingClient?: typeof PlanKeepingClient;
}

export function openPool({
  onConnectionLost,
  max = 10,
  KeepingClient = PlanKeepingClient,
  ...rest
}: PoolOptions): PostgresPool {
  const Connection = isPooled(rest.url) ? Client : KeepingClient;
  const options = clientOptions(rest);
  const { servers, connectTimeoutMs } = options;
  const pool = new pg.Pool({ ...options, max, connectionTimeoutMillis: connectTimeoutMs, Client: Connection as never });
  // The pool reports the loss of idle connections, each of the others its own.
  pool.on('error', onConnectionLost);
  pool.on('connect', (client) => client.on('error', onConnectionLost));
  return {
    async connect() {
      for (let failures = 0; ; ) {
        const tried = servers.current;
        try {
          const client = await pool.connect();
          if (!(client as unknown as Client).isSuspect) return client;
          // It may have gone silent while it was idle, which is not worth the wait to find out.
          client.release(true);
        } catch (error) {
          if (++failures >= servers.count || servers.current === tried) throw error;
        }
      }
    },
    end: () => pool.end(),
    options: pool.options,
  };
}
