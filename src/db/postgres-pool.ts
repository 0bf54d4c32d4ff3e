// Pools of connections to PostgreSQL: the one that requests and loops share, and a small one for the delivery queue.
import { Kysely, PostgresDialect, type PostgresPool } from 'kysely';
import pg from 'pg';
import { Client, type ConnectionOptions, clientOptions } from './postgres-client.ts';
import { isPooled } from './postgres-url.ts';
import { keptName } from './prepared.ts';
import type { Tables } from './tables.ts';

interface NamedStatement {
  name: string;
  text: string;
  values: unknown[];
}

/** Gives statements a name where the server should keep their plan (`keepPlan` in prepared.ts). */
class PlanKeepingClient extends Client {
  // biome-ignore lint/suspicious/noExplicitAny: the driver has many signatures, Kysely uses one
  override query(...args: any[]): any {
    const [text, values] = args;
    const name = args.length === 2 && Array.isArray(values) ? this.nameOf(text) : undefined;
    return name === undefined ? super.query(...args) : this.runNamed({ name, text, values });
  }

  protected nameOf(text: string): string | undefined {
    return keptName(text);
  }

  protected runNamed(statement: NamedStatement): Promise<unknown> {
    return super.query(statement);
  }
}

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
          // It may have gone silent while idle, and finding out would take a whole deadline.
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

const maxQueueConnections = 4;
/** A statement whose text depends on the number of rows has too many variants to keep them all. */
const maxKept = 50;
const replanAfter = 64;
const names = new Map<string, string>();

function nameOf(text: string): string | undefined {
  const known = names.get(text);
  if (known !== undefined || names.size >= maxKept) return known;
  const name = `sluice_${names.size}`;
  names.set(text, name);
  return name;
}

class ReplanningClient extends PlanKeepingClient {
  #used = 0;

  protected override nameOf(text: string): string | undefined {
    return nameOf(text);
  }

  protected override runNamed(statement: NamedStatement): Promise<unknown> {
    const run = () => super.runNamed(statement);
    return ++this.#used % replanAfter === 0 ? this.query('discard plans').then(run) : run();
  }
}

/**
 * The delivery queue has its own connections, so that its statements do not wait for requests, nor requests for them. The
 * server keeps the plan of each statement and makes a new one now and then: a plan that suits an empty table does not suit
 * one that has grown a thousandfold within a minute. Behind a PgBouncer in transaction mode it keeps no plans.
 */
export function openQueueDatabase(url: string, onConnectionLost: (error: Error) => void): Kysely<Tables> {
  const pool = openPool({
    url,
    onConnectionLost,
    KeepingClient: ReplanningClient,
    max: maxQueueConnections,
    options: '-c enable_seqscan=off',
  });
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}
