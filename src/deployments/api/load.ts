import type { Deployment } from '../../contract/deployments.ts';
import type { Db } from '../../db/database.ts';
import { canaryPolicyOf, findEnvironment } from '../../environments/queries.ts';
import { compareTraffic } from '../canary-traffic.ts';
import { type CanaryState, presentDeployment } from '../present.ts';
import { type DeploymentRow, listTimelines } from '../queries.ts';
import { judge } from '../rules/analysis.ts';
import { percentsOf } from '../rules/situation.ts';

/** Deployments as the API shows them, with their timelines and what was measured of canaries. */
export async function loadDeployments(db: Db, rows: DeploymentRow[]): Promise<Deployment[]> {
  const timelines = await listTimelines(
    db,
    rows.map((row) => row.id),
  );
  return Promise.all(
    rows.map(async (row) => presentDeployment(row, timelines.get(row.id)!, await loadCanary(db, row))),
  );
}

async function loadCanary(db: Db, row: DeploymentRow): Promise<CanaryState | null> {
  if (row.canary_phase === null) return null;
  const environment = await findEnvironment(db, row.project_id, row.environment);
  if (!environment) return null;
  const canary = canaryPolicyOf(environment);
  const traffic = await compareTraffic(db, row);
  return { traffic, analysis: judge(traffic, canary, percentsOf(row, { canary }).length) };
}
