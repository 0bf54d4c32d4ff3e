// Which environments are in which region.
import type { Db } from '../../db/database.ts';
import { type EnvironmentKey, keyText } from '../../environments/key.ts';

const keyOfRow = (row: { project_id: string; name: string }): EnvironmentKey => ({
  projectId: row.project_id,
  environment: row.name,
});

/** The regions of these environments, by the text of their key; without those that do not exist any more. */
export async function findRegions(db: Db, keys: EnvironmentKey[]): Promise<Map<string, string>> {
  if (keys.length === 0) return new Map();
  const projects = [...new Set(keys.map(({ projectId }) => projectId))];
  const rows = await db
    .selectFrom('environment')
    .select(['project_id', 'name', 'region'])
    .where('project_id', 'in', projects)
    .execute();
  return new Map(rows.map((row) => [keyText(keyOfRow(row)), row.region]));
}

export async function listEnvironmentsIn(db: Db, region: string): Promise<EnvironmentKey[]> {
  const rows = await db.selectFrom('environment').select(['project_id', 'name']).where('region', '=', region).execute();
  return rows.map(keyOfRow);
}
