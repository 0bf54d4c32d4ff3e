import { type AlertRow, presentAlert } from '../alerts/alert-queries.ts';
import * as contract from '../contract/overview.ts';
import { healthStates } from '../contract/projects.ts';
import { revisionId } from '../contract/references.ts';
import { allows, type Caller } from '../contract/scopes.ts';
import type { Db } from '../db/database.ts';
import { findCertificates, presentDomain } from '../domains/domain-queries.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import type { Clock } from '../lib/clock.ts';
import { isoTime, isoTimeOrNull } from '../lib/iso-time.ts';
import { type ProjectRow, presentHealth, presentProject } from '../projects/project-queries.ts';
import * as queries from './overview-queries.ts';

interface OverviewParts {
  clock: Clock;
  urlOf(host: string): string;
  domainUrlOf(hostname: string): string;
}

const maxIncidents = 20;

export function overviewRoutes(parts: OverviewParts): ServedRoute[] {
  return [
    serve(contract.getOverview, async ({ caller }, db) => ({ body: await readOverview(db, caller) })),

    serve(contract.listOverview, async (call, db) => {
      const rows = await queries.listOverviewProjects(db, call.caller, call.query, call.page);
      const shown = await readEnvironments(db, call.caller, rows.slice(0, call.page.limit), parts);
      return {
        body: call.paginate(
          rows,
          (row) => row.id,
          (row) => presentOverview(row, shown.get(row.id)!),
        ),
      };
    }),

    serve(contract.listAllDeployments, async (call, db) => {
      const { rows, searchedTo } = await queries.listAllDeployments(db, call.caller, call.query, call.page);
      return { body: call.paginate(rows, (row) => row.id, presentSummary, searchedTo) };
    }),

    serve(contract.listAllAlerts, async (call, db) => {
      const { rows, searchedTo } = await queries.listAllAlerts(db, call.caller, call.query, call.page);
      const present = ({ project_name, ...row }: AlertRow & { project_name: string }) => ({
        ...presentAlert(row),
        project_id: row.project_id,
        project_name,
      });
      return { body: call.paginate(rows, (row) => row.id, present, searchedTo) };
    }),

    serve(contract.listAllDomains, async (call, db) => {
      const { rows, searchedTo } = await queries.listAllDomains(db, call.caller, call.query.search, call.page);
      const certificates = await findCertificates(db, rows);
      return {
        body: call.paginate(
          rows,
          (row) => row.id,
          (row) => ({
            ...presentDomain(row, certificates.get(row.certificate_id ?? '') ?? null, parts.domainUrlOf),
            project_id: row.project_id,
            project_name: row.project_name,
          }),
          searchedTo,
        ),
      };
    }),
  ];
}

async function readOverview(db: Db, caller: Caller): Promise<contract.Overview> {
  const counts = await queries.countProjects(db, caller);
  const incidents = await queries.listIncidents(db, caller, maxIncidents);
  return {
    projects: [...counts.values()].reduce((sum, count) => sum + count, 0),
    health: Object.fromEntries(counts) as contract.Overview['health'],
    firing_alerts: allows(caller.scopes, 'alerts:read') ? await queries.countFiringOf(db, caller) : null,
    in_progress: allows(caller.scopes, 'deployments:read') ? await queries.countInProgress(db, caller) : null,
    incidents: incidents.map(({ project_id, project_name, environment, ...health }) => ({
      project_id,
      project_name,
      environment,
      ...presentHealth(health),
    })),
  };
}

type EnvironmentRow = Awaited<ReturnType<typeof queries.listEnvironmentsOf>>[number];

interface Shown {
  row: EnvironmentRow;
  overview: contract.EnvironmentOverview;
}

/** What the projects of a page show of their environments; what the caller has no scope for is null. */
async function readEnvironments(
  db: Db,
  { scopes }: Caller,
  projects: ProjectRow[],
  { clock, urlOf }: OverviewParts,
): Promise<Map<string, Shown[]>> {
  const ids = projects.map(({ id }) => id);
  const shown = new Map<string, Shown[]>(ids.map((id) => [id, []]));
  if (ids.length === 0) return shown;
  const seesDeployments = allows(scopes, 'deployments:read');
  const seesAlerts = allows(scopes, 'alerts:read');
  const rows = await queries.listEnvironmentsOf(db, ids);
  const serving = Map.groupBy(await queries.listServing(db, ids), keyOf);
  const last = new Map(
    (seesDeployments ? await queries.listLastDeployments(db, ids) : []).map((row) => [keyOf(row), row]),
  );
  const firing = new Map(
    (seesAlerts ? await queries.countFiring(db, ids) : []).map((row) => [keyOf(row), Number(row.count)]),
  );
  const requests = seesAlerts ? await queries.sumRequests(db, ids, clock.now()) : null;
  for (const row of rows) {
    const key = keyOf({ project_id: row.project_id, environment: row.name });
    const revisions = serving.get(key) ?? [];
    const active = revisions.find(({ state }) => state === 'active') ?? null;
    const latest = last.get(key);
    const sum = requests?.get(key);
    const overview = {
      name: row.name,
      url: urlOf(row.host),
      health: presentHealth(row),
      locked: row.locked_at !== null,
      active_revision: active && revisionId(active.number),
      image: active?.image ?? null,
      traffic: revisions
        .filter(({ traffic_percent }) => traffic_percent > 0)
        .map(({ number, traffic_percent }) => ({ revision: revisionId(number), percent: traffic_percent })),
      last_deployment: latest ? presentSummary(latest) : null,
      firing_alerts: seesAlerts ? (firing.get(key) ?? 0) : null,
      requests: requests && {
        rate: sum?.rate ?? 0,
        error_rate: sum?.errorRate ?? null,
        rates: sum?.rates ?? new Array(contract.sparkPoints).fill(0),
      },
    };
    shown.get(row.project_id)!.push({ row, overview });
  }
  return shown;
}

const keyOf = ({ project_id, environment }: { project_id: string; environment: string }): string =>
  `${project_id} ${environment}`;

const rankOf = ({ row }: Shown): number => healthStates.indexOf(row.health_state);

function presentOverview(row: ProjectRow, shown: Shown[]): contract.ProjectOverview {
  const { id, name, slug, labels, health, created_at } = presentProject(
    row,
    shown.map((each) => each.row),
  );
  const environments = [...shown].sort((a, b) => rankOf(a) - rankOf(b)).map(({ overview }) => overview);
  return { id, name, slug, labels, health, environments, created_at };
}

function presentSummary(row: queries.DeploymentSummaryRow): contract.DeploymentSummary {
  return {
    id: row.id,
    project_id: row.project_id,
    project_name: row.project_name,
    environment: row.environment,
    kind: row.kind,
    revision: revisionId(row.revision),
    previous_revision: row.previous_revision === null ? null : revisionId(row.previous_revision),
    image: row.image,
    strategy: row.strategy,
    state: row.state,
    canary:
      row.state !== 'canary' || row.canary_phase === null
        ? null
        : { phase: row.canary_phase, step: row.canary_step, percent: row.canary_percent_now },
    failure: row.failure_code === null ? null : { code: row.failure_code, message: row.failure_message ?? '' },
    note: row.note,
    created_by: row.created_by,
    created_by_name: row.created_by_name,
    created_at: isoTime(row.created_at),
    finished_at: isoTimeOrNull(row.finished_at),
  };
}
