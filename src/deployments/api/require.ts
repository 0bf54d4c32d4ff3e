import type { Caller } from '../../contract/caller.ts';
import { notFound } from '../../contract/errors.ts';
import type { Db } from '../../db/database.ts';
import { requireProject } from '../../projects/queries.ts';
import { type DeploymentRow, findDeployment } from '../queries.ts';

export async function requireDeployment(
  db: Db,
  caller: Caller,
  params: { id: string; dpl: string },
): Promise<DeploymentRow> {
  const project = await requireProject(db, caller, params.id);
  const row = await findDeployment(db, project.id, params.dpl);
  if (!row) throw notFound('dpl', params.dpl);
  return row;
}
