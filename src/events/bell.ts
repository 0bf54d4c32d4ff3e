// Rings in every process that shares the database when an event was committed in one of them. It is rung after the
// commit, by a statement of its own and only now and then: a NOTIFY inside of transactions would make their commits wait
// for each other. Who needs to hear every ring has to look from time to time as well, for a ring can get lost.

import { sql } from 'kysely';
import type pg from 'pg';
import { onCommit } from '../db/after-commit.ts';
import type { Db } from '../db/database.ts';
import type { Log } from '../lib/log.ts';

const channel = 'sluice_event';
const ringEveryMs = 5;
const comeBackAfterMs = 1000;

export interface Bell {
  stop(): Promise<void>;
}

export interface BellParts {
  db: Db;
  /** null: there is no other process. */
  databaseUrl: string | null;
  /** Unlike that of any other process. */
  id: string;
  log: Log;
  heard(): void;
}

export function startBell({ db, databaseUrl, id, log, heard }: BellParts): Bell {
  if (databaseUrl === null) {
    const forget = onCommit(db, 'event', heard);
    return { stop: async () => forget() };
  }
  // The first of many rings at once; the others are heard together, a moment later.
  let quiet: NodeJS.Timeout | null = null;
  let again = false;
  const ring = () => {
    again = false;
    quiet = setTimeout(() => {
      quiet = null;
      if (again) ring();
    }, ringEveryMs);
    sql`select pg_notify(${channel}, ${id})`
      .execute(db)
      .catch((error) => log.debug({ err: error }, 'other processes were not woken'));
  };
  const forget = onCommit(db, 'event', () => {
    heard();
    if (quiet) again = true;
    else ring();
  });
  const listener = listen(databaseUrl, id, heard);
  return {
    async stop() {
      forget();
      if (quiet) clearTimeout(quiet);
      again = false;
      await listener.stop();
    },
  };
}

/** A connection of its own that only listens, made anew when it is lost. */
function listen(databaseUrl: string, id: string, heard: () => void): { stop(): Promise<void> } {
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
    fresh.on('notification', ({ payload }) => {
      if (payload !== id) heard();
    });
    try {
      await fresh.connect();
      await fresh.query(`listen ${channel}`);
      heard();
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
