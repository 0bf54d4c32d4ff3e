// Measurements and the routing table, in the database.
import { CompiledQuery } from 'kysely';
import { type Db, dialectOf } from '../db/database.ts';
import { postgresRows, sqliteRows } from '../db/json-rows.ts';
import type { Tables } from '../db/tables.ts';
import { publish } from '../signals/signals.ts';
import { latencyBoundsMs, type Measurement, quantileMs, type Side } from './measure/measurements.ts';
import type { Route, RoutingTable } from './table.ts';

const measuredFields = {
  project_id: 'text',
  environment: 'text',
  revision: 'bigint',
  at: 'bigint',
  router: 'text',
  requests: 'bigint',
  errors: 'bigint',
  latency: 'text',
} as const;

const measuredColumns = Object.keys(measuredFields).join(', ');
const storing = (
  rows: string,
) => `insert into traffic (${measuredColumns}) select ${measuredColumns} from ${rows} where true
  on conflict (project_id, environment, at, revision, router) do update
    set requests = excluded.requests, errors = excluded.errors, latency = excluded.latency`;
const statements = {
  sqlite: storing(sqliteRows(measuredFields)),
  postgres: storing(postgresRows('$1', measuredFields)),
};

/** Counts are absolute per bucket and router: storing a later count replaces the earlier one. */
export async function storeMeasurements(db: Db, router: string, measurements: Measurement[]): Promise<void> {
  if (measurements.length === 0) return;
  const rows = measurements.map(({ project, latency, ...measured }) => ({
    ...measured,
    project_id: project,
    router,
    latency: JSON.stringify(latency),
  }));
  await db.executeQuery(CompiledQuery.raw(statements[dialectOf(db)], [JSON.stringify(rows)]));
}

/** What one revision did since then, over all routers. */
export async function sumTraffic(
  db: Db,
  key: { projectId: string; environment: string },
  revision: number,
  sinceMs: number,
): Promise<Side> {
  const rows = await db
    .selectFrom('traffic')
    .select(['requests', 'errors', 'latency'])
    .where('project_id', '=', key.projectId)
    .where('environment', '=', key.environment)
    .where('at', '>=', sinceMs)
    .where('revision', '=', revision)
    .execute();
  const latency = new Array<number>(latencyBoundsMs.length + 1).fill(0);
  let requests = 0;
  let errors = 0;
  for (const row of rows) {
    requests += row.requests;
    errors += row.errors;
    for (const [index, count] of (JSON.parse(row.latency) as number[]).entries()) latency[index]! += count;
  }
  return {
    requests,
    errorRate: requests === 0 ? null : Math.round((errors / requests) * 1e6) / 1e6,
    p95Ms: quantileMs(latency, 0.95),
  };
}

export interface TrafficRow {
  revision: number;
  at: number;
  requests: number;
  errors: number;
  latency: number[];
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
    .select(['revision', 'at', 'requests', 'errors', 'latency'])
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

export async function deleteTrafficBefore(db: Db, ms: number): Promise<void> {
  await db.deleteFrom('traffic').where('at', '<', ms).execute();
}

const routingVersion = 'routing_version';

/** In the transaction of every change of which instances get which requests. */
export async function markRoutingChanged(tx: Db): Promise<void> {
  await tx
    .insertInto('meta')
    .values({ name: routingVersion, value: '1' })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet((e) => ({
        value: e.cast(e(e.cast<number>('meta.value', 'numeric'), '+', e.lit(1)), 'text'),
      })),
    )
    .execute();
  publish(tx, 'routing', null);
}

export async function readRoutingVersion(db: Db): Promise<string> {
  const row = await db.selectFrom('meta').select('value').where('name', '=', routingVersion).executeTakeFirst();
  return row?.value ?? '';
}

export async function loadRoutingTable(db: Db, domain: string): Promise<RoutingTable> {
  const shares = await db
    .selectFrom('revision')
    .innerJoin('environment', (join) =>
      join
        .onRef('environment.project_id', '=', 'revision.project_id')
        .onRef('environment.name', '=', 'revision.environment'),
    )
    .select(['environment.host', 'revision.project_id', 'revision.environment', 'number', 'traffic_percent'])
    .where('traffic_percent', '>', 0)
    .orderBy('number')
    .execute();
  const instances = await db
    .selectFrom('instance')
    .select(['id', 'project_id', 'environment', 'revision', 'host', 'port'])
    .where('state', '=', 'healthy')
    .orderBy('id')
    .execute();
  const domains = await db
    .selectFrom('domain')
    .select(['project_id', 'environment', 'hostname', 'certificate_id'])
    .execute();
  const byRevision = Map.groupBy(instances, (row) => `${row.project_id} ${row.environment} ${row.revision}`);
  const table = new Map<string, Route>();
  const routes = new Map<string, Route>();
  for (const row of shares) {
    const key = `${row.project_id} ${row.environment}`;
    const route = routes.get(key) ?? { project: row.project_id, environment: row.environment, shares: [] };
    const targets = byRevision.get(`${row.project_id} ${row.environment} ${row.number}`) ?? [];
    route.shares.push({
      revision: row.number,
      percent: row.traffic_percent,
      targets: targets.map(({ id, host, port }) => ({ instance: id, host: host!, port: port! })),
    });
    routes.set(key, route);
    table.set(`${row.host}.${domain}`, route);
  }
  addDomains(table, routes, domains);
  return table;
}

type DomainRow = Pick<Tables['domain'], 'project_id' | 'environment' | 'hostname' | 'certificate_id'>;

/** However many domains an environment has, it has two routes at most: with a certificate and without. */
function addDomains(table: Map<string, Route>, routes: Map<string, Route>, domains: DomainRow[]): void {
  const secured = new Map<Route, Route>();
  for (const { project_id, environment, hostname, certificate_id } of domains) {
    const route = routes.get(`${project_id} ${environment}`);
    if (!route) continue;
    let secure = secured.get(route);
    if (!secure) {
      secure = { ...route, secure: true };
      secured.set(route, secure);
    }
    table.set(hostname, certificate_id === null ? route : secure);
  }
}
