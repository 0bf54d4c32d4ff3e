import type { Db } from '../../db/database.ts';
import { postgresNow } from '../../db/database-clock.ts';
import type { LoggedInstance } from '../store/segments.ts';

export type WantedInstance = LoggedInstance & { region: string };

/** `owner`: only those of environments that this process reconciles; null: there is no other process. */
export async function listWanted(db: Db, owner: string | null): Promise<WantedInstance[]> {
  let query = db
    .selectFrom('instance')
    .select(['instance.id', 'instance.project_id', 'instance.environment', 'instance.revision', 'instance.region']);
  if (owner !== null) {
    query = query
      .innerJoin('environment_lease', (join) =>
        join
          .onRef('environment_lease.project_id', '=', 'instance.project_id')
          .onRef('environment_lease.environment', '=', 'instance.environment'),
      )
      .where('environment_lease.owner', '=', owner)
      .where('environment_lease.until', '>=', postgresNow);
  }
  const rows = await query.execute();
  return rows.map(({ id, project_id, environment, revision, region }) => ({
    id,
    key: { projectId: project_id, environment },
    revision,
    region,
  }));
}
