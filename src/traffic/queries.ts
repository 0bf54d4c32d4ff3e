// Measurements and the routing table, in the database.
import type { Db } from '../db/database.ts';
import { latencyBoundsMs, type Measurement, quantileMs, type Side } from './measurements.ts';
import type { Route, RoutingTable } from './table.ts';

export async function storeMeasurements(db: Db, router: string, measurements: Measurement[]): Promise<void> {
  if (measurements.length === 0) return;
  const rows = measurements.map((m) => ({
    project_id: m.project,
    environment: m.environment,
    revision: m.revision,
    at: m.at,
    router,
    requests: m.requests,
    errors: m.errors,
    latency: JSON.stringify(m.latency),
  }));
  await db
    .insertInto('traffic')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['project_id', 'environment', 'at', 'revision', 'router']).doUpdateSet((e) => ({
        requests: e.ref('excluded.requests'),
        errors: e.ref('excluded.errors'),
        latency: e.ref('excluded.latency'),
      })),
    )
    .execute();
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

export async function deleteTrafficBefore(db: Db, ms: number): Promise<void> {
  await db.deleteFrom('traffic').where('at', '<', ms).execute();
}

const routingVersion = 'routing_version';

/** In the transaction of whatever changes who gets which requests. */
export async function touchRouting(tx: Db): Promise<void> {
  await tx
    .insertInto('meta')
    .values({ name: routingVersion, value: '1' })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet((e) => ({
        value: e.cast(e(e.cast<number>('meta.value', 'integer'), '+', 1), 'text'),
      })),
    )
    .execute();
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
  const byRevision = Map.groupBy(instances, (row) => `${row.project_id} ${row.environment} ${row.revision}`);
  const table = new Map<string, Route>();
  for (const row of shares) {
    const host = `${row.host}.${domain}`;
    const route = table.get(host) ?? { project: row.project_id, environment: row.environment, shares: [] };
    const targets = byRevision.get(`${row.project_id} ${row.environment} ${row.number}`) ?? [];
    route.shares.push({
      revision: row.number,
      percent: row.traffic_percent,
      targets: targets.map(({ id, host, port }) => ({ instance: id, host: host!, port: port! })),
    });
    table.set(host, route);
  }
  return table;
}
