import pg from 'pg';

const int8 = 20;
const parseAsNumber = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === int8 ? Number : pg.types.getTypeParser(oid, format as 'text'),
};

export const poolOptions = (url: string): pg.PoolConfig => ({
  connectionString: url,
  max: 10,
  connectionTimeoutMillis: 5000,
  // After this the request fails as retryable, which is better than waiting longer.
  statement_timeout: 15_000,
  idle_in_transaction_session_timeout: 30_000,
  keepAlive: true,
  types: parseAsNumber as pg.CustomTypesConfig,
});

export function openPool(url: string, onConnectionLost: (error: Error) => void): pg.Pool {
  return surviveLostConnections(new pg.Pool(poolOptions(url)), onConnectionLost);
}

/**
 * A lost connection is an error of the statement that runs on it, and nothing else. The pool reports the loss of idle
 * connections; one in use is an emitter without listeners, whose error would end the process.
 */
export function surviveLostConnections(pool: pg.Pool, onConnectionLost: (error: Error) => void): pg.Pool {
  pool.on('error', onConnectionLost);
  pool.on('connect', (client) => client.on('error', onConnectionLost));
  return pool;
}
