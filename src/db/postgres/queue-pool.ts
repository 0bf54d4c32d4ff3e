// The delivery queue's own connections, so that its statements do not wait for requests, nor requests for them. The
// server keeps the plan of each statement and makes a new one now and then: a plan that was good for an empty table is
// not for one that has grown a thousandfold within a minute. Behind a PgBouncer in transaction mode it keeps none.
import { Kysely, PostgresDialect } from 'kysely';
import type { Tables } from '../tables.ts';
import { type NamedStatement, PlanKeepingClient } from './plan-keeping-client.ts';
import { openPool } from './pool.ts';

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

export function openQueueDatabase(url: string, onConnectionLost: (error: Error) => void): Kysely<Tables> {
  const pool = openPool({
    url,
    onConnectionLost,
    KeepingClient: ReplanningClient,
    max: maxConnections,
    options: '-c enable_seqscan=off',
  });
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}
