import type { PostgresPool } from 'kysely';
import pg from 'pg';
import { Client, type ClientOptions } from './client.ts';
import { PlanKeepingClient } from './plan-keeping-client.ts';
import { Servers } from './servers.ts';
import { isPooled, readPostgresUrl } from './url.ts';

const int8 = 20;
const parseAsNumber = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === int8 ? Number : pg.types.getTypeParser(oid, format as 'text'),
};

const idleInTransactionMs = 30_000;

interface PoolOptions {
  url: string;
  onConnectionLost: (error: Error) => void;
  max?: number;
  /** A statement takes as long as it needs. */
  unlimited?: boolean;
  /** Not used behind a PgBouncer in transaction mode, where the server keeps no plans. */
  KeepingClient?: typeof PlanKeepingClient;
  /** Settings of the server for these connections; a PgBouncer in transaction mode does not take any. */
  options?: string;
}

/** What a client needs to connect to this database, where the limits of the server come in too. */
export function clientOptions({ url, unlimited = false, options }: Omit<PoolOptions, 'onConnectionLost'>) {
  const { servers, pooled, statementTimeoutMs, connectTimeoutMs } = readPostgresUrl(url);
  return {
    servers: new Servers(servers),
    connectTimeoutMs,
    // The server is given the time to end the statement itself, which keeps the connection.
    statementDeadlineMs: unlimited ? null : (statementTimeoutMs * 4) / 3,
    types: parseAsNumber as pg.CustomTypesConfig,
    ...(!pooled &&
      !unlimited && {
        // After this the request fails as retryable, which is better than waiting longer.
        statement_timeout: statementTimeoutMs,
        idle_in_transaction_session_timeout: idleInTransactionMs,
      }),
    ...(!pooled && options !== undefined && { options }),
  } satisfies ClientOptions;
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
