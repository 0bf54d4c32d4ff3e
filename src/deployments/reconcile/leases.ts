// Which process reconciles an environment. On SQLite there is only one; on PostgreSQL each environment is leased, and the
// lease of a process that died runs out.
import type { Db } from '../../db/database.ts';
import { type EnvironmentKey, keyText } from '../../environments/key.ts';
import type { Clock } from '../../lib/clock.ts';

const leaseMs = 20_000;

export interface Leases {
  /** Takes or renews the lease. Gives whether this process has it. */
  hold(key: EnvironmentKey): Promise<boolean>;
  /** The environment has nothing to reconcile any more. */
  release(key: EnvironmentKey): Promise<void>;
  releaseAll(): Promise<void>;
}

export const onlyProcess: Leases = { hold: async () => true, release: async () => {}, releaseAll: async () => {} };

export function databaseLeases(db: Db, owner: string, clock: Clock): Leases {
  const held = new Map<string, number>();
  return {
    async hold(key) {
      const name = keyText(key);
      const nowMs = clock.now();
      if ((held.get(name) ?? 0) - nowMs > leaseMs / 2) return true;
      const row = { project_id: key.projectId, environment: key.environment, owner, until: nowMs + leaseMs };
      const taken = await db
        .insertInto('environment_lease')
        .values(row)
        .onConflict((conflict) =>
          conflict
            .columns(['project_id', 'environment'])
            .doUpdateSet({ owner, until: row.until })
            .where((e) => e.or([e('environment_lease.owner', '=', owner), e('environment_lease.until', '<', nowMs)])),
        )
        .returning('owner')
        .executeTakeFirst();
      if (taken) held.set(name, row.until);
      else held.delete(name);
      return taken !== undefined;
    },
    async release(key) {
      held.delete(keyText(key));
      await db
        .deleteFrom('environment_lease')
        .where('project_id', '=', key.projectId)
        .where('environment', '=', key.environment)
        .where('owner', '=', owner)
        .execute();
    },
    async releaseAll() {
      await db.deleteFrom('environment_lease').where('owner', '=', owner).execute();
      held.clear();
    },
  };
}
