// What spans all projects of an account, read with a few queries however many projects a page shows.
import { type RawBuilder, type SelectQueryBuilder, type SqlBool, sql } from 'kysely';
import type { Severity } from '../contract/alert-rules.ts';
import type { AlertState } from '../contract/alerts.ts';
import type { DeploymentState } from '../contract/deployments.ts';
import { ApiError } from '../contract/errors.ts';
import { type OverviewSort, sparkPoints } from '../contract/overview.ts';
import { type HealthState, healthStates } from '../contract/projects.ts';
import type { Caller } from '../contract/scopes.ts';
import type { Db } from '../db/database.ts';
import type { Page } from '../db/keyset-page.ts';
import { containsWord, type Found, searchNewestFirst, wordsOf } from '../db/search.ts';
import type { Tables } from '../db/tables.ts';
import type { ProjectRow } from '../projects/project-queries.ts';
import { bucketMs } from '../traffic/measurements.ts';

/** Only what the caller may see. */
function visible<T extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, T, Row>,
  { accountId, projectIds }: Caller,
  project: string,
): SelectQueryBuilder<Tables, T, Row> {
  const own = query.where('account_id' as never, '=', accountId as never);
  return projectIds === null ? own : own.where(project as never, 'in', [...projectIds, ''] as never);
}

// Projects.

const rankOf = sql.join(
  healthStates.map((state, rank) => sql`when ${sql.lit(state)} then ${sql.lit(rank)}`),
  sql` `,
);
const idleRank = healthStates.indexOf('idle');
/** That of the environment that is worst off. */
const healthRank = sql<number>`coalesce((select min(case e.health_state ${rankOf} end) from environment e
  where e.project_id = project.id), ${sql.lit(idleRank)})`;
/** Ids sort by time. */
const lastDeployed = sql<string>`coalesce((select max(d.id) from deployment d where d.project_id = project.id), '')`;

/** What a page is sorted by, and in which direction; the id decides between equals. */
const orders: Record<OverviewSort, { by: RawBuilder<unknown> | null; direction: 'asc' | 'desc' }> = {
  newest: { by: null, direction: 'desc' },
  name: { by: sql`lower(project.name)`, direction: 'asc' },
  health: { by: healthRank, direction: 'asc' },
  deployed: { by: lastDeployed, direction: 'desc' },
};

export interface ProjectFilter {
  search?: string | undefined;
  health?: HealthState | undefined;
  sort?: OverviewSort | undefined;
}

/** The images that serve now, the names of environments: a word may be in any of them. */
const inEnvironments = (word: string) => sql<SqlBool>`exists (select 1 from environment e
    where e.project_id = project.id and ${containsWord(sql`e.name`, word)})
  or exists (select 1 from revision r where r.project_id = project.id and r.state in ('active', 'canary')
    and ${containsWord(sql`r.image`, word)})`;

export async function listOverviewProjects(
  db: Db,
  caller: Caller,
  { search, health, sort = 'newest' }: ProjectFilter,
  { limit, after }: Page,
): Promise<ProjectRow[]> {
  const { by, direction } = orders[sort];
  let query = visible(db.selectFrom('project').selectAll(), caller, 'id');
  for (const word of wordsOf(search)) {
    const own = [sql`project.name`, sql`project.slug`, sql`project.labels`].map((text) => containsWord(text, word));
    query = query.where(sql<SqlBool>`(${sql.join([...own, inEnvironments(word)], sql` or `)})`);
  }
  if (health !== undefined) query = query.where(healthRank, '=', healthStates.indexOf(health));
  if (after !== null) {
    const sign = direction === 'asc' ? sql`>` : sql`<`;
    if (by === null) {
      query = query.where('id', '<', after);
    } else {
      // The last project of the page before has its place by what it is sorted by now.
      const last = await db
        .selectFrom('project')
        .select(by.as('key' as never))
        .where('id', '=', after)
        .executeTakeFirst();
      if (!last) throw lostPlace();
      query = query.where(sql<SqlBool>`(${by}, project.id) ${sign} (${(last as { key: unknown }).key}, ${after})`);
    }
  }
  if (by !== null) query = query.orderBy(by as never, direction);
  return query
    .orderBy('id', direction)
    .limit(limit + 1)
    .execute();
}

const lostPlace = () =>
  new ApiError('invalid_cursor', 'The project at which the last page ended is gone. Start again without a cursor.', {
    details: [{ path: 'query.cursor', message: 'its project was deleted' }],
  });

export async function listEnvironmentsOf(db: Db, projectIds: string[]) {
  return db
    .selectFrom('environment')
    .select(['project_id', 'name', 'host', 'health_state', 'health_since', 'health_reason', 'locked_at'])
    .where('project_id', 'in', projectIds)
    .orderBy('name')
    .execute();
}

/** Revisions that serve, or that get requests. */
export async function listServing(db: Db, projectIds: string[]) {
  return db
    .selectFrom('revision')
    .select(['project_id', 'environment', 'number', 'image', 'state', 'traffic_percent'])
    .where('project_id', 'in', projectIds)
    .where((e) => e.or([e('state', '=', 'active'), e('traffic_percent', '>', 0)]))
    .orderBy('number')
    .execute();
}

/** The latest of each environment. */
export async function listLastDeployments(db: Db, projectIds: string[]): Promise<DeploymentSummaryRow[]> {
  const latest = sql<string>`(select max(d.id) from deployment d
    where d.project_id = environment.project_id and d.environment = environment.name)`;
  const ids = await db
    .selectFrom('environment')
    .select(latest.as('id'))
    .where('project_id', 'in', projectIds)
    .execute();
  const found = ids.flatMap(({ id }) => id ?? []);
  if (found.length === 0) return [];
  return summaries(db).where('deployment.id', 'in', found).execute();
}

export async function countFiring(db: Db, projectIds: string[]) {
  return db
    .selectFrom('alert')
    .select(['project_id', 'environment', (e) => e.fn.countAll<number>().as('count')])
    .where('project_id', 'in', projectIds)
    .where('resolved_at', 'is', null)
    .groupBy(['project_id', 'environment'])
    .execute();
}

const hourMs = 3_600_000;
const sliceMs = hourMs / sparkPoints;
/** What "now" is: long enough to be steady, short enough to show trouble. */
const recentSlices = 2;

export interface Requests {
  rate: number;
  errorRate: number | null;
  rates: number[];
}

/** Requests of the last hour in slices, and of the last minutes; by project and environment. */
export async function sumRequests(db: Db, projectIds: string[], atMs: number): Promise<Map<string, Requests>> {
  const fromMs = Math.floor((atMs - hourMs) / bucketMs) * bucketMs;
  /** The last slice goes on until now. */
  const lastedMs = (index: number) => (index < sparkPoints - 1 ? sliceMs : atMs - fromMs - index * sliceMs);
  const slice = sql<number>`(at - ${sql.lit(fromMs)}) / ${sql.lit(sliceMs)}`;
  const rows = await db
    .selectFrom('traffic')
    .select(['project_id', 'environment', slice.as('slice')])
    .select((e) => [e.fn.sum<number>('requests').as('requests'), e.fn.sum<number>('errors').as('errors')])
    .where('project_id', 'in', projectIds)
    .where('at', '>=', fromMs)
    .where('at', '<=', atMs)
    .groupBy(['project_id', 'environment', slice])
    .execute();
  const sums = new Map<string, Requests & { requests: number; errors: number }>();
  for (const row of rows) {
    const key = `${row.project_id} ${row.environment}`;
    const sum = sums.get(key) ?? {
      rate: 0,
      errorRate: null,
      rates: new Array(sparkPoints).fill(0),
      requests: 0,
      errors: 0,
    };
    sums.set(key, sum);
    const index = Math.min(sparkPoints - 1, Math.floor(Number(row.slice)));
    const requests = Number(row.requests);
    sum.rates[index] += rounded((requests * 1000) / lastedMs(index));
    if (index < sparkPoints - recentSlices) continue;
    sum.requests += requests;
    sum.errors += Number(row.errors);
  }
  for (const sum of sums.values()) {
    sum.rate = rounded((sum.requests * 1000) / (atMs - fromMs - (sparkPoints - recentSlices) * sliceMs));
    sum.errorRate = sum.requests === 0 ? null : Math.min(1, rounded(sum.errors / sum.requests));
  }
  return sums;
}

const rounded = (value: number): number => Math.round(value * 1e4) / 1e4;

export async function countProjects(db: Db, caller: Caller): Promise<Map<HealthState, number>> {
  const rows = await visible(db.selectFrom('project').select(healthRank.as('rank')), caller, 'id').execute();
  const counts = new Map<HealthState, number>(healthStates.map((state) => [state, 0]));
  for (const { rank } of rows as { rank: number }[]) {
    const state = healthStates[Number(rank)]!;
    counts.set(state, counts.get(state)! + 1);
  }
  return counts;
}

export async function countFiringOf(db: Db, caller: Caller): Promise<number> {
  const query = visible(
    db.selectFrom('alert').select((e) => e.fn.countAll<number>().as('count')),
    caller,
    'project_id',
  );
  return Number((await query.where('resolved_at', 'is', null).executeTakeFirstOrThrow()).count);
}

export async function countInProgress(db: Db, caller: Caller): Promise<number> {
  const query = visible(
    db.selectFrom('deployment').select((e) => e.fn.countAll<number>().as('count')),
    caller,
    'project_id',
  );
  return Number((await query.where('finished_at', 'is', null).executeTakeFirstOrThrow()).count);
}

/** Environments that do not serve as they should, the worst first. */
export async function listIncidents(db: Db, caller: Caller, limit: number) {
  let query = db
    .selectFrom('environment')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .select(['project.id as project_id', 'project.name as project_name', 'environment.name as environment'])
    .select(['health_state', 'health_since', 'health_reason'])
    .where('project.account_id', '=', caller.accountId)
    .where('health_state', 'in', ['down', 'degraded']);
  if (caller.projectIds !== null) query = query.where('project.id', 'in', [...caller.projectIds, '']);
  return query
    .orderBy(sql`case health_state when 'down' then 0 else 1 end`)
    .orderBy('health_since')
    .limit(limit)
    .execute();
}

// Deployments, alerts and domains of all projects.

const projectName = <T extends 'deployment' | 'alert' | 'domain'>(table: T) =>
  sql<string>`(select p.name from project p where p.id = ${sql.ref(`${table}.project_id`)})`;
const creatorName = sql<string | null>`(select t.name from token t where t.id = deployment.created_by)`;

const summaries = (db: Db) =>
  db
    .selectFrom('deployment')
    .select(['id', 'project_id', 'environment', 'kind', 'revision', 'previous_revision', 'image', 'strategy', 'state'])
    .select(['canary_phase', 'canary_step', 'canary_percent_now', 'failure_code', 'failure_message', 'note'])
    .select(['created_by', 'created_at', 'finished_at'])
    .select([projectName('deployment').as('project_name'), creatorName.as('created_by_name')]);

export type DeploymentSummaryRow = Awaited<ReturnType<ReturnType<typeof summaries>['execute']>>[number];

interface DeploymentFilter {
  project_id?: string | undefined;
  environment?: string | undefined;
  state?: DeploymentState | undefined;
  search?: string | undefined;
}

export async function listAllDeployments(
  db: Db,
  caller: Caller,
  { project_id, environment, state, search }: DeploymentFilter,
  page: Page,
): Promise<Found<DeploymentSummaryRow>> {
  let query = visible(summaries(db), caller, 'project_id');
  if (project_id !== undefined) query = query.where('project_id', '=', project_id);
  if (environment !== undefined) query = query.where('environment', '=', environment);
  if (state !== undefined) query = query.where('state', '=', state);
  const texts = [sql`deployment.image`, sql`deployment.note`, sql`deployment.environment`, sql`deployment.id`];
  const revision = sql`'r' || deployment.revision`;
  return searchNewestFirst(query, search, [...texts, revision, projectName('deployment'), creatorName], page);
}

interface AlertFilter {
  state?: AlertState | undefined;
  severity?: Severity | undefined;
  search?: string | undefined;
}

export async function listAllAlerts(db: Db, caller: Caller, { state, severity, search }: AlertFilter, page: Page) {
  const named = db.selectFrom('alert').selectAll().select(projectName('alert').as('project_name'));
  let query = visible(named, caller, 'project_id');
  if (state !== undefined) query = query.where('resolved_at', state === 'firing' ? 'is' : 'is not', null);
  if (severity !== undefined) query = query.where('severity', '=', severity);
  const texts = [sql`alert.name`, sql`alert.message`, sql`alert.environment`, projectName('alert')];
  return searchNewestFirst(query, search, texts, page);
}

export async function listAllDomains(db: Db, caller: Caller, search: string | undefined, page: Page) {
  const named = db.selectFrom('domain').selectAll().select(projectName('domain').as('project_name'));
  const query = visible(named, caller, 'project_id');
  const texts = [sql`domain.hostname`, sql`domain.environment`, projectName('domain')];
  return searchNewestFirst(query, search, texts, page);
}
