// Measurements and changes of the routing table, in the database.
import { CompiledQuery } from 'kysely';
import { type Db, dialectOf } from '../db/database.ts';
import { postgresRows, prepared, sqliteRows } from '../db/prepared.ts';
import type { EnvironmentKey } from '../environments/environment-key.ts';
import { publish } from '../signals/signals.ts';
import type { Measurement } from './measurements.ts';

const measuredFields = {
  project_id: 'text',
  environment: 'text',
  revision: 'bigint',
  at: 'bigint',
  router: 'text',
  requests: 'bigint',
  errors: 'bigint',
  client_errors: 'bigint',
  latency: 'text',
  detail: 'text',
} as const;

const measuredColumns = Object.keys(measuredFields).join(', ');
const storing = (
  rows: string,
) => `insert into traffic (${measuredColumns}) select ${measuredColumns} from ${rows} where true
  on conflict (project_id, environment, at, revision, router) do update
    set requests = excluded.requests, errors = excluded.errors, client_errors = excluded.client_errors,
      latency = excluded.latency, detail = excluded.detail
    where excluded.requests + excluded.errors >= traffic.requests + traffic.errors`;
const statements = {
  sqlite: storing(sqliteRows(measuredFields)),
  postgres: storing(postgresRows('$1', measuredFields)),
};

/**
 * Counts are absolute per bucket and router, and only rise: a later count replaces an earlier one, and an earlier one that
 * arrives late changes nothing.
 */
export async function storeMeasurements(db: Db, router: string, measurements: Measurement[]): Promise<void> {
  if (measurements.length === 0) return;
  const rows = measurements.map(({ project, latency, clientErrors = 0, detail = null, ...measured }) => ({
    ...measured,
    project_id: project,
    router,
    client_errors: clientErrors,
    latency: JSON.stringify(latency),
    detail,
  }));
  await db.executeQuery(CompiledQuery.raw(statements[dialectOf(db)], [JSON.stringify(rows)]));
}

export interface TrafficRow {
  revision: number;
  at: number;
  router: string;
  requests: number;
  errors: number;
  clientErrors: number;
  latency: number[];
  detail: string | null;
}

/** What all routers stored of an environment, or of one of its revisions, in some time. */
export async function listTraffic(
  db: Db,
  of: { projectId: string; environment: string; revision: number | null },
  fromMs: number,
  toMs: number,
): Promise<TrafficRow[]> {
  let query = db
    .selectFrom('traffic')
    .select(['revision', 'at', 'router', 'requests', 'errors', 'client_errors as clientErrors', 'latency', 'detail'])
    .where('project_id', '=', of.projectId)
    .where('environment', '=', of.environment)
    .where('at', '>=', fromMs)
    .where('at', '<', toMs);
  if (of.revision !== null) query = query.where('revision', '=', of.revision);
  const rows = await query.execute();
  return rows.map((row) => ({ ...row, latency: JSON.parse(row.latency) as number[] }));
}

/** How long measurements are kept. */
export const keptForMs = 7 * 24 * 3600_000;

/** So many rows are a statement's at most that it ends in time, however many environments there are. */
const deletedMs = 60_000;

/** Deletes some of it, the oldest first. Gives whether there is more. */
export async function deleteTrafficBefore(db: Db, ms: number): Promise<boolean> {
  const { oldest } = await db
    .selectFrom('traffic')
    .select((e) => e.fn.min('at').as('oldest'))
    .executeTakeFirstOrThrow();
  if (oldest === null || Number(oldest) >= ms) return false;
  const upTo = Math.min(ms, Number(oldest) + deletedMs);
  await db.deleteFrom('traffic').where('at', '<', upTo).execute();
  return upTo < ms;
}

/** Where `meta` has the version of the routing table. */
export const routingVersion = 'routing_version';
const routingFloor = 'routing_floor';

interface RoutingState {
  version: number;
  /** Deleted environments with a version up to this are forgotten: who is behind it has to load the whole table. */
  floor: number;
}

const selectState = prepared((db) =>
  db.selectFrom('meta').select(['name', 'value']).where('name', 'in', [routingVersion, routingFloor]),
);

export async function readRoutingState(db: Db): Promise<RoutingState> {
  const rows = await selectState(db, routingVersion, routingFloor);
  const of = (name: string) => Number(rows.find((row) => row.name === name)?.value ?? 0);
  return { version: of(routingVersion), floor: of(routingFloor) };
}

/**
 * In the transaction of every change of which instances get which requests, of an environment or, before it is deleted,
 * of a whole project. Gives the version of the routing table with the change. Versions rise in the order of the commits,
 * because the first statement keeps others waiting until this transaction ends.
 */
export async function markRoutingChanged(
  tx: Db,
  { projectId, environment }: { projectId: string; environment?: string },
): Promise<number> {
  const { value } = await tx
    .insertInto('meta')
    .values({ name: routingVersion, value: '1' })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet((e) => ({
        value: e.cast(e(e.cast<number>('meta.value', 'numeric'), '+', e.lit(1)), 'text'),
      })),
    )
    .returning('value')
    .executeTakeFirstOrThrow();
  const version = Number(value);
  for (const name of environment === undefined ? await listNames(tx, projectId) : [environment]) {
    await tx
      .insertInto('routing')
      .values({ project_id: projectId, environment: name, version })
      .onConflict((conflict) => conflict.columns(['project_id', 'environment']).doUpdateSet({ version }))
      .execute();
  }
  publish(tx, 'routing', null);
  return version;
}

/** The version at which the environment last changed. */
export async function findRoutingVersion(db: Db, { projectId, environment }: EnvironmentKey): Promise<number> {
  const row = await db
    .selectFrom('routing')
    .select('version')
    .where('project_id', '=', projectId)
    .where('environment', '=', environment)
    .executeTakeFirst();
  return Number(row?.version ?? 0);
}

async function listNames(tx: Db, projectId: string): Promise<string[]> {
  const rows = await tx.selectFrom('environment').select('name').where('project_id', '=', projectId).execute();
  return rows.map(({ name }) => name);
}
