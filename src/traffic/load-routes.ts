// Reads what environments have in the routing table. Each read is one statement, and so one snapshot: the shares,
// instances and domains of an environment belong together. A whole table is read in pages, which are no snapshot
// together; what changes in between has a higher version than the one read first, and is read again as a change.
import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../db/database.ts';
import { prepared } from '../db/prepared.ts';
import type { EnvironmentRoutes, Host, Share, Target } from './data-plane.ts';

/** More environments than a project has, all of which change together when it is deleted. */
const pageSize = 200;

interface Row {
  kind: 'environment' | 'share' | 'instance' | 'domain';
  project_id: string;
  environment: string;
  /** The host label of an environment, the id of an instance, the name of a domain. */
  name: string | null;
  address: string | null;
  /** The version of an environment, the number of a revision. */
  number: number;
  /** A percentage, a port, or whether there is a certificate. */
  value: number;
}

/**
 * `picked` selects project_id, environment and version; the placeholders are given their values with each call. The cross
 * joins make SQLite look the rows of the picked environments up, where it might read all rows of a table instead.
 */
const readRoutes = (picked: RawBuilder<unknown>) =>
  prepared((db) => ({
    compile: () =>
      sql<Row>`with picked as (${picked})
        select 'environment' as kind, picked.project_id, picked.environment, environment.host as name,
            cast(null as text) as address, picked.version as number, 0 as value
          from picked left join environment
            on environment.project_id = picked.project_id and environment.name = picked.environment
              and environment.deleted_at is null
        union all
        select 'share', picked.project_id, picked.environment, null, null, revision.number, revision.traffic_percent
          from picked cross join revision
          where revision.project_id = picked.project_id and revision.environment = picked.environment and revision.traffic_percent > 0
        union all
        select 'instance', picked.project_id, picked.environment, instance.id, instance.host, instance.revision,
            instance.port
          from picked cross join instance
          where instance.project_id = picked.project_id and instance.environment = picked.environment
            and instance.host <> '' and (instance.state = 'healthy' or (instance.is_fallback = 1 and not exists (
              select 1 from instance as other where other.project_id = picked.project_id
                and other.environment = picked.environment and other.state = 'healthy')))
        union all
        select 'domain', picked.project_id, picked.environment, domain.hostname, null, 0,
            case when domain.certificate_id is null then 0 else 1 end
          from picked cross join domain
          where domain.project_id = picked.project_id and domain.environment = picked.environment
            and domain.proof is not null`.compile(db),
  }));

const readChanged = readRoutes(
  sql`select project_id, environment, version from routing where version > ${0}
    order by version, project_id, environment limit ${0}`,
);
const readPage = readRoutes(
  sql`select project_id, name as environment, 0 as version from environment
    where deleted_at is null and (project_id, name) > (${''}, ${''}) order by project_id, name limit ${0}`,
);

export interface RoutingChanges {
  /** The version up to which these are all changes. */
  version: number;
  environments: EnvironmentRoutes[];
}

/** The oldest changes after a version. */
export async function loadChanges(db: Db, domain: string, since: number): Promise<RoutingChanges> {
  const rows = await readChanged(db, since, pageSize);
  const versions = rows.flatMap((row) => (row.kind === 'environment' ? row.number : [])).sort((a, b) => a - b);
  const last = versions.at(-1) ?? since;
  // The page may end between two environments that changed together.
  const version = versions.length < pageSize ? last : (versions.findLast((one) => one < last) ?? last);
  return { version, environments: assemble(rows, domain) };
}

/** All environments that have something in the table, in pages. */
export async function* loadAll(db: Db, domain: string): AsyncGenerator<EnvironmentRoutes[]> {
  for (let [project, environment] = ['', '']; ; ) {
    const rows = await readPage(db, project, environment, pageSize);
    const page = assemble(rows, domain);
    yield page.filter(({ hosts }) => hosts.length > 0);
    if (page.length < pageSize) return;
    for (const one of page) {
      if (one.project < project || (one.project === project && one.environment <= environment)) continue;
      [project, environment] = [one.project, one.environment];
    }
  }
}

function assemble(rows: Row[], domain: string): EnvironmentRoutes[] {
  const keyOf = (row: Row) => `${row.project_id} ${row.environment}`;
  const byEnvironment = Map.groupBy(rows, keyOf);
  return [...byEnvironment.values()].map((own) => {
    const { project_id, environment } = own[0]!;
    const of = (kind: Row['kind']) => own.filter((row) => row.kind === kind);
    const targets = Map.groupBy(of('instance').sort(byName), (row) => row.number);
    const shares = of('share')
      .sort((a, b) => a.number - b.number)
      .map((row) => ({
        revision: row.number,
        percent: row.value,
        targets: (targets.get(row.number) ?? []).map(targetOf),
      })) satisfies Share[];
    const label = of('environment')[0]?.name ?? null;
    const hosts = shares.length === 0 || label === null ? [] : hostsOf(`${label}.${domain}`, of('domain'));
    return { project: project_id, environment, hosts, shares };
  });
}

const byName = (a: Row, b: Row): number => (a.name! < b.name! ? -1 : 1);
const targetOf = (row: Row): Target => ({ instance: row.name!, host: row.address!, port: row.value });

const hostsOf = (own: string, domains: Row[]): Host[] => [
  { name: own.toLowerCase(), secure: false },
  ...domains.sort(byName).map((row) => ({ name: row.name!.toLowerCase(), secure: row.value === 1 })),
];

/** Forgets deleted environments up to a version that all agents but those away for long have passed. */
export async function forgetDeleted(db: Db, upTo: number): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const value = String(upTo);
    await tx
      .insertInto('meta')
      .values({ name: 'routing_floor', value })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
      .execute();
    await tx
      .deleteFrom('routing')
      .where('version', '<=', upTo)
      .where((e) =>
        e.not(
          e.exists(
            e
              .selectFrom('environment')
              .select('environment.name')
              .whereRef('environment.project_id', '=', 'routing.project_id')
              .whereRef('environment.name', '=', 'routing.environment'),
          ),
        ),
      )
      .execute();
  });
}
