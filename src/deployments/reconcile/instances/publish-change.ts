import type { Db } from '../../../db/database.ts';
import type { EnvironmentKey } from '../../../environments/key.ts';
import { publish } from '../../../signals/signals.ts';

/** Tells people who look at the environment that something about its instances changed. */
export async function publishChange(tx: Db, key: EnvironmentKey): Promise<void> {
  const project = await tx
    .selectFrom('project')
    .select('account_id')
    .where('id', '=', key.projectId)
    .executeTakeFirst();
  if (project) publish(tx, 'changes', { accountId: project.account_id, ...key });
}
