// Connections of their own for the few statements that deliveries are made of, so that these wait for no request, nor
// requests for them. Each statement is planned once and kept by the server, and planned anew now and then: a plan that
// was good for an empty table is not for one that has grown a thousandfold within a minute.
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { poolOptions } from './postgres-pool.ts';
import type { Tables } from './tables.ts';

const maxConnections = 4;
/** Statements made for a number of rows are too many to keep. */
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

class KeepingClient extends pg.Client {
  #used = 0;

  // biome-ignore lint/suspicious/noExplicitAny: the driver has many ways to be asked, Kysely uses one
  override query(...args: any[]): any {
    // biome-ignore lint/suspicious/noExplicitAny: as above
    const plain = super.query.bind(this) as any;
    const [text, values] = args;
    const name = args.length === 2 && Array.isArray(values) ? nameOf(text) : undefined;
    if (!name) return plain(...args);
    const run = () => plain({ name, text, values });
    return ++this.#used % replanAfter === 0 ? plain('discard plans').then(run) : run();
  }
}

export function openQueue(url: string, onConnectionLost: (error: Error) => void): Kysely<Tables> {
  const pool = new pg.Pool({
    ...poolOptions(url),
    Client: KeepingClient,
    max: maxConnections,
    options: '-c enable_seqscan=off',
  });
  pool.on('error', onConnectionLost);
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}
