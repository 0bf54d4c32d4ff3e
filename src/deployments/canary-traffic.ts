import type { Db } from '../db/database.ts';
import { keyOf } from '../environments/key.ts';
import { bucketOf } from '../traffic/measure/measurements.ts';
import { sumTraffic } from '../traffic/queries.ts';
import type { DeploymentRow } from './queries.ts';
import type { Comparison } from './rules/analysis.ts';

/** What both revisions did since the canary's step began. */
export async function compareTraffic(db: Db, row: DeploymentRow): Promise<Comparison> {
  const since = bucketOf(row.step_since ?? row.created_at);
  return {
    stable: await sumTraffic(db, keyOf(row), row.previous_revision ?? 0, since),
    canary: await sumTraffic(db, keyOf(row), row.revision, since),
  };
}
