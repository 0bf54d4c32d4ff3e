// A PostgreSQL with an installation in it, and what the measurements need of both.

import { sql } from 'kysely';
import { type App, createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createIds, type IdSource } from '../../src/lib/ids.ts';
import { isolatedEnv } from '../../test/helpers/app.ts';
import { parentOf } from '../../test/helpers/children.ts';
import { createDatabase, startPostgres } from '../../test/helpers/postgres.ts';
import { fillInstallation } from './fill.ts';

export interface Installation {
  app: App;
  /** How many environments it has. */
  count: number;
  databaseUrl: string;
  /** The process id of PostgreSQL. */
  server: number;
  clock: Clock;
  ids: IdSource;
  close(): Promise<void>;
}

export async function openInstallation(count: number): Promise<Installation> {
  const postgres = await startPostgres();
  const database = await createDatabase(postgres.url);
  const isolated = await isolatedEnv();
  // The parts are measured one by one, so the app itself only answers requests.
  const env = { ...isolated.env, SLUICE_DATABASE_URL: database.url, SLUICE_ROLES: 'api' };
  const app = await createApp(readConfig(env, false));
  const { db } = app.store;
  const clock = systemClock;
  await fillInstallation(db, count, clock.now());
  await sql`vacuum analyze`.execute(db);
  return {
    ...{ app, count, clock, databaseUrl: database.url, ids: createIds(clock) },
    server: await serverOf(app),
    async close() {
      await app.stop();
      await isolated.clean();
      await postgres.stop();
    },
  };
}

async function serverOf({ store }: App): Promise<number> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(store.db);
  return parentOf(rows[0]!.pid);
}

/** Bytes of a row, its part of the indexes included. */
export async function bytesPerRow({ store }: App, table: string): Promise<number> {
  await sql.raw(`vacuum analyze ${table}`).execute(store.db);
  const { rows } = await sql
    .raw<{ bytes: number; all: number }>(
      `select pg_total_relation_size('${table}')::bigint as bytes, (select count(*) from ${table})::bigint as all`,
    )
    .execute(store.db);
  return Number(rows[0]!.bytes) / Math.max(1, Number(rows[0]!.all));
}
