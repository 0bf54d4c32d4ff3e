// Which share of the requests each revision gets (`traffic_percent`) is written here and nowhere else.
import type { Db } from '../db/database.ts';
import { type EnvironmentKey, keyOf } from '../environments/environment-key.ts';
import { publish } from '../signals/signals.ts';
import { markRoutingChanged } from '../traffic/traffic-queries.ts';
import { type DeploymentRow, lockDeployment, type RevisionRow } from './deployment-queries.ts';
import { type InstanceRow, lockHealthy } from './instance-queries.ts';

/**
 * The new revision gets this share, the previous one the rest. Throws ChangedMeanwhile where the deployment has changed
 * since it was read, for example because it was aborted, or one of the instances that the shares rest on.
 */
export async function saveShares(
  tx: Db,
  deployment: DeploymentRow,
  targetPercent: number,
  instances: readonly InstanceRow[],
): Promise<void> {
  await lockDeployment(tx, deployment);
  await lockHealthy(tx, instances);
  const { revision, previous_revision } = deployment;
  await updateShare(tx, keyOf(deployment), revision, targetPercent);
  if (previous_revision !== null) await updateShare(tx, keyOf(deployment), previous_revision, 100 - targetPercent);
  await markRoutingChanged(tx, keyOf(deployment));
}

/** Saves the shares while a deployment goes on; false: they are like that already. */
export async function moveTraffic(
  write: (work: (tx: Db) => Promise<void>) => Promise<void>,
  deployment: DeploymentRow,
  target: RevisionRow,
  active: RevisionRow | null,
  targetPercent: number,
  instances: readonly InstanceRow[],
): Promise<boolean> {
  const previous = active?.number === deployment.previous_revision ? active : null;
  const isRestSaved = !previous || previous.traffic_percent === 100 - targetPercent;
  if (target.traffic_percent === targetPercent && isRestSaved) return false;
  await write(async (tx) => {
    await saveShares(tx, deployment, targetPercent, instances);
    publish(tx, 'changes', { accountId: deployment.account_id, ...keyOf(deployment) });
  });
  return true;
}

async function updateShare(tx: Db, key: EnvironmentKey, number: number, percent: number): Promise<void> {
  await tx
    .updateTable('revision')
    .set({ traffic_percent: percent })
    .where('project_id', '=', key.projectId)
    .where('environment', '=', key.environment)
    .where('number', '=', number)
    .execute();
}
