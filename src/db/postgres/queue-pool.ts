// The delivery queue's own connections, so that its statements do not wait for requests, nor requests for them. The
// server keeps the plan of each statement and makes a new one now and then: a plan that was good for an empty table is
// not for one that has grown a thousandfold within a minute. Behind a PgBouncer in transaction mode it keeps none.
import { Kysely, PostgresDialect } from 'kysely';
import type { Tables } from '../tables.ts';
import { Client } from './client.ts';
import { openPool } from './pool.ts';
import { isPooled } from './url.ts';

const maxConnections = 4;
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

class KeepingClient extends Client {
  #used = 0;

  // biome-ignore lint/suspicious/noExplicitAny: the driver has many signatures, Kysely uses one
  override query(...args: any[]): any {
    const [text, values] = args;
    const name = args.length === 2 && Array.isArray(values) ? nameOf(text) : undefined;
    if (!name) return super.query(...args);
    const run = () => super.query({ name, text, values });
    return ++this.#used % replanAfter === 0 ? super.query('discard plans').then(run) : run();
  }
}

export function openQueueDatabase(url: string, onConnectionLost: (error: Error) => void): Kysely<Tables> {
  const pool = openPool({
    url,
    onConnectionLost,
    Client: isPooled(url) ? Client : KeepingClient,
    max: maxConnections,
    options: '-c enable_seqscan=off',
  });
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}
