import type { Db } from '../../db/database.ts';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import { publish } from '../../signals/signals.ts';
import { touchRouting } from '../../traffic/queries.ts';
import { type DeploymentRow, findInProgress, type RevisionRow, updateRevision } from '../queries.ts';

/** Writes who gets which share while a deployment goes on; false: that is how it is already. */
export async function saveShares(
  db: Db,
  deployment: DeploymentRow,
  fresh: RevisionRow,
  active: RevisionRow | undefined,
  percent: number,
): Promise<boolean> {
  if (fresh.traffic_percent === percent && (!active || active.traffic_percent === 100 - percent)) return false;
  const key = { projectId: deployment.project_id, environment: deployment.environment };
  await db.transaction().execute(async (tx) => {
    // Somebody may have aborted meanwhile; then these shares are old news.
    const now = await findInProgress(tx, key);
    if (now?.version !== deployment.version) throw new ChangedMeanwhile();
    await updateRevision(tx, key, fresh.number, { traffic_percent: percent });
    if (active) await updateRevision(tx, key, active.number, { traffic_percent: 100 - percent });
    await touchRouting(tx);
    publish(tx, 'changes', { accountId: deployment.account_id, ...key });
  });
  return true;
}
