// What an account has. Each count reads at most what the quota allows, or a number that is kept for it.

import { environmentDefaults } from '../contract/environments.ts';
import type { QuotaResource } from '../contract/quota-resources.ts';
import type { Db } from '../db/database.ts';

type Counted = Exclude<QuotaResource, 'requests_per_minute'>;

export async function countUsed(db: Db, accountId: string, resource: QuotaResource): Promise<number> {
  return resource === 'requests_per_minute' ? 0 : counts[resource](db, accountId);
}

const counts: Record<Counted, (db: Db, accountId: string) => Promise<number>> = {
  projects: (db, accountId) =>
    oneNumber(
      db
        .selectFrom('project')
        .select((e) => e.fn.countAll<number>().as('used'))
        .where('account_id', '=', accountId)
        .where('deleted_at', 'is', null),
    ),
  environments: (db, accountId) =>
    oneNumber(environmentsOf(db, accountId).select((e) => e.fn.countAll<number>().as('used'))),
  instances: (db, accountId) =>
    oneNumber(runningOf(db, accountId).select((e) => e.fn.sum<number>('environment.replicas').as('used'))),
  async memory_mb(db, accountId) {
    const rows = await runningOf(db, accountId)
      .select((e) => ['environment.resources', e.fn.sum<number>('environment.replicas').as('replicas')])
      .groupBy('environment.resources')
      .execute();
    return rows.reduce((sum, { resources, replicas }) => sum + memoryOf(resources) * Number(replicas), 0);
  },
  ports: (db, accountId) => countPorts(db, accountId),
  webhooks: (db, accountId) =>
    oneNumber(
      db
        .selectFrom('webhook')
        .select((e) => e.fn.countAll<number>().as('used'))
        .where('account_id', '=', accountId)
        .where('state', '!=', 'deleted'),
    ),
  domains: (db, accountId) =>
    oneNumber(
      db
        .selectFrom('domain')
        .select((e) => e.fn.countAll<number>().as('used'))
        .where('account_id', '=', accountId),
    ),
  tokens: (db, accountId) =>
    oneNumber(
      db
        .selectFrom('token')
        .select((e) => e.fn.countAll<number>().as('used'))
        .where('account_id', '=', accountId)
        .where('revoked_at', 'is', null),
    ),
  variables_bytes: (db, accountId) =>
    oneNumber(
      db
        .selectFrom('variable_set')
        .innerJoin('project', 'project.id', 'variable_set.project_id')
        .select((e) => e.fn.sum<number>('variable_set.bytes').as('used'))
        .where('project.account_id', '=', accountId)
        .where('project.deleted_at', 'is', null),
    ),
  log_bytes: (db, accountId) =>
    oneNumber(
      db
        .selectFrom('account_usage')
        .select('used')
        .where('account_id', '=', accountId)
        .where('resource', '=', 'log_bytes'),
    ),
};

/** An instance has its port on every host of its region, and needs it once. */
export const countPorts = (db: Db, accountId: string): Promise<number> =>
  oneNumber(
    db
      .selectFrom('instance_port')
      .select((e) => e.fn.count<number>('instance_id').distinct().as('used'))
      .where('account_id', '=', accountId),
  );

const environmentsOf = (db: Db, accountId: string) =>
  db
    .selectFrom('environment')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .where('project.account_id', '=', accountId)
    .where('project.deleted_at', 'is', null)
    .where('environment.deleted_at', 'is', null);

/** Environments that have a live revision, or a deployment that is to bring one. */
const runningOf = (db: Db, accountId: string) =>
  environmentsOf(db, accountId).where((e) =>
    e.or([
      e.exists(
        e
          .selectFrom('revision')
          .select('number')
          .whereRef('revision.project_id', '=', 'environment.project_id')
          .whereRef('revision.environment', '=', 'environment.name')
          .where('revision.state', '=', 'active'),
      ),
      e.exists(
        e
          .selectFrom('deployment')
          .select('id')
          .whereRef('deployment.project_id', '=', 'environment.project_id')
          .whereRef('deployment.environment', '=', 'environment.name')
          .where('deployment.finished_at', 'is', null),
      ),
    ]),
  );

const memoryOf = (resources: string): number =>
  ({ ...environmentDefaults.resources, ...JSON.parse(resources) }).memory_mb;

async function oneNumber(query: { executeTakeFirst(): Promise<{ used: number | null } | undefined> }): Promise<number> {
  return Number((await query.executeTakeFirst())?.used ?? 0);
}
