import { ApiError } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';

/** Any deployment of the project that has not ended. */
export async function findInProgressOf(db: Db, projectId: string): Promise<{ id: string } | undefined> {
  return db
    .selectFrom('deployment')
    .select('id')
    .where('project_id', '=', projectId)
    .where('finished_at', 'is', null)
    .executeTakeFirst();
}

export const deploymentInProgress = ({ id }: { id: string }): ApiError =>
  new ApiError('deployment_in_progress', `The deployment ${id} has not ended.`, {
    details: [{ path: 'deployment', message: id }],
  });
