// Connections to PostgreSQL.
//
// Every statement has a deadline on this side too: the server's own limits do not help when the server, or something on the
// way to it, has gone silent. At the deadline the connection is cut, which fails the statement that runs on it. Where the
// URL lists several addresses, connections go to the one that accepts writes.
import pg from 'pg';
import { StartError } from '../lib/start-error.ts';
import { isReadOnly } from './database-errors.ts';
import { isPooled, readPostgresUrl } from './postgres-url.ts';

export interface ConnectionOptions {
  url: string;
  /** A statement takes as long as it needs. */
  unlimited?: boolean;
  /** Settings of the server for these connections; a PgBouncer in transaction mode does not take any. */
  options?: string;
}

interface ClientOptions extends pg.ClientConfig {
  servers: Servers;
  /** null: a statement takes as long as it needs. */
  statementDeadlineMs: number | null;
  connectTimeoutMs: number;
}

/** Has the code of a network timeout, so that callers treat it as one. */
class NoAnswer extends Error {
  readonly code = 'ETIMEDOUT';
}

class ReadOnlyServer extends Error {
  readonly code = '25006';
}

const keepAliveMs = 10_000;
/** A live server closes its side at once. */
const closeWithinMs = 1000;

export class Client extends pg.Client {
  readonly #servers: Servers;
  readonly #url: string;
  readonly #statementDeadlineMs: number | null;
  readonly #connectTimeoutMs: number;
  #answeredAt = 0;

  constructor(options: ClientOptions) {
    const { servers, statementDeadlineMs, connectTimeoutMs, ...config } = options;
    super({
      ...config,
      connectionString: servers.current,
      connectionTimeoutMillis: 0,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
    });
    this.#servers = servers;
    this.#url = servers.current;
    this.#statementDeadlineMs = statementDeadlineMs;
    this.#connectTimeoutMs = connectTimeoutMs;
    // A lost connection is an error of the statement that runs on it, and must not end the process.
    this.on('error', () => {});
  }

  /** Whether another connection was found silent since this one last answered. */
  get isSuspect(): boolean {
    return this.#answeredAt < this.#servers.suspectBefore;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the driver has two signatures
  override connect(callback?: (error: any, client: any) => void): any {
    const connected = this.#connect();
    if (!callback) return connected;
    connected.then(
      () => callback(null, this),
      (error) => callback(error, undefined),
    );
  }

  // biome-ignore lint/suspicious/noExplicitAny: the driver has many signatures, all of which give a promise here
  override query(...args: any[]): any {
    // biome-ignore lint/suspicious/noExplicitAny: as above
    const answer: Promise<unknown> = (super.query as any)(...args);
    const sentAt = performance.now();
    const timer =
      this.#statementDeadlineMs === null
        ? undefined
        : setTimeout(() => this.#giveUp(sentAt), this.#statementDeadlineMs);
    answer.then(
      () => this.#answered(timer),
      (error) => this.#failed(timer, error),
    );
    return answer;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the driver has two signatures
  override end(callback?: (error: any) => void): any {
    const ended = callback ? super.end(callback) : super.end();
    setTimeout(() => this.#cut(), closeWithinMs).unref();
    return ended;
  }

  /** Ends the connection now, without waiting for the server. */
  #cut(error?: Error): void {
    // biome-ignore lint/suspicious/noExplicitAny: the driver's types do not have it
    (this as any).connection.stream.destroy(error);
  }

  async #connect(): Promise<this> {
    const timer = setTimeout(
      () => this.#cut(new NoAnswer('timeout exceeded when trying to connect')),
      this.#connectTimeoutMs,
    );
    try {
      await super.connect();
      const { rows } = await super.query('show transaction_read_only');
      if (rows[0].transaction_read_only === 'on') throw new ReadOnlyServer('the server takes no writes');
      this.#answeredAt = performance.now();
      return this;
    } catch (error) {
      this.#servers.leave(this.#url);
      this.#cut();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #answered(timer: NodeJS.Timeout | undefined): void {
    clearTimeout(timer);
    this.#answeredAt = performance.now();
  }

  #failed(timer: NodeJS.Timeout | undefined, error: unknown): void {
    if (error instanceof pg.DatabaseError) this.#answered(timer);
    else clearTimeout(timer);
    if (!isReadOnly(error)) return;
    this.#servers.leave(this.#url);
    this.#cut(new ReadOnlyServer('the server takes no writes any more'));
  }

  #giveUp(sentAt: number): void {
    this.#servers.suspectBefore = Math.max(this.#servers.suspectBefore, sentAt);
    this.#servers.leave(this.#url);
    this.#cut(new NoAnswer('timeout: the server did not answer a statement'));
  }
}

const int8 = 20;
const parseAsNumber = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === int8 ? Number : pg.types.getTypeParser(oid, format as 'text'),
};

const idleInTransactionMs = 30_000;

/** What a client needs to connect to this database, with the limits that the server itself enforces. */
export function clientOptions({ url, unlimited = false, options }: ConnectionOptions) {
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

/**
 * The addresses of one database, only one of which accepts writes at a time. New connections go to the address that worked
 * last. All connections of a pool share this object, so one failure moves all of them to the next address.
 */
class Servers {
  readonly #urls: readonly string[];
  #current = 0;
  /** One connection was found silent: others that have not answered since this time are suspect too. */
  suspectBefore = Number.NEGATIVE_INFINITY;

  constructor(urls: readonly string[]) {
    this.#urls = urls;
  }

  get count(): number {
    return this.#urls.length;
  }

  get current(): string {
    return this.#urls[this.#current]!;
  }

  /** This address failed, so the next connection goes to the one after it. Does nothing if that has happened already. */
  leave(url: string): void {
    if (url === this.current) this.#current = (this.#current + 1) % this.#urls.length;
  }
}

/** Opens one connection, outside of any pool, to the first address that accepts writes. The caller ends it. */
export async function connectOnce(url: string): Promise<Client> {
  const options = clientOptions({ url });
  for (let attempts = 1; ; attempts++) {
    const client = new Client(options);
    try {
      await client.connect();
      return client;
    } catch (error) {
      if (attempts >= options.servers.count) throw error;
    }
  }
}

/** What the operator should do about an undeclared pooler, by the setting that points to it. */
const advice = {
  SLUICE_DATABASE_URL:
    'add pgbouncer=true to it, and set SLUICE_DATABASE_DIRECT_URL to PostgreSQL itself, without which changes of other ' +
    'processes are noticed a second later.',
  SLUICE_DATABASE_DIRECT_URL: 'it has to lead to PostgreSQL itself.',
};

/**
 * Throws StartError if the address leads to a PgBouncer in transaction mode that the URL does not declare with
 * `pgbouncer=true`. In that mode a connection has no session of its own: notifications get lost, and prepared statements
 * are missing on the next server connection.
 */
export async function refuseUndeclaredPooler(setting: keyof typeof advice, url: string): Promise<void> {
  if (setting === 'SLUICE_DATABASE_URL' && isPooled(url)) return;
  const clients: Client[] = [];
  const sessionOf = async () => {
    const client = await connectOnce(url).catch((error) => {
      if (!/unsupported startup parameter/.test(error.message)) throw error;
      throw new StartError(`${setting} leads to a PgBouncer: ${advice[setting]}`);
    });
    clients.push(client);
    const { rows } = await client.query('select pg_backend_pid() as pid');
    // PostgreSQL announces its own pid when a connection opens; a pooler announces another number.
    return { pid: rows[0].pid as number, announced: (client as unknown as { processID: number }).processID };
  };
  try {
    const one = await sessionOf();
    if (one.pid === one.announced) return;
    // It is a pooler. Both connections are open, so in session mode each has a session of its own.
    const two = await sessionOf();
    if (one.pid === two.pid)
      throw new StartError(`${setting} leads to a PgBouncer in transaction mode: ${advice[setting]}`);
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}
