import type { Deployment } from '../../contract/deployments.ts';
import type { Db } from '../../db/database.ts';
import { compareTraffic } from '../canary-traffic.ts';
import { presentDeployment } from '../present.ts';
import { type DeploymentRow, listTimelines } from '../queries.ts';

/** Deployments as the API shows them, with their timelines and what was measured of canaries. */
export async function loadDeployments(db: Db, rows: DeploymentRow[]): Promise<Deployment[]> {
  const timelines = await listTimelines(
    db,
    rows.map((row) => row.id),
  );
  return Promise.all(
    rows.map(async (row) =>
      presentDeployment(row, timelines.get(row.id)!, row.canary_phase === null ? null : await compareTraffic(db, row)),
    ),
  );
}
