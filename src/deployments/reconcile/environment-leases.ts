// Which process reconciles an environment. On SQLite there is only one; on PostgreSQL each environment is leased, and
// the lease of a process that died runs out.
//
// A process cannot know that it was not paused a moment ago. So each holder has a fence, a number higher than that of
// any holder before it, and every write names it: a process that lost its lease while it was paused changes nothing any
// more. Whether a lease has run out is for the clock of the database to say, which is the same for all processes.
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { postgresNow } from '../../db/database-clock.ts';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import { jsonRows } from '../../db/prepared.ts';
import { type EnvironmentKey, keyOf, keyText } from '../../environments/environment-key.ts';
import { type Clock, monotonicOf } from '../../lib/clock.ts';

const defaultLeaseMs = 20_000;

/** Another process has the environment by now. */
export class EnvironmentLeaseLost extends ChangedMeanwhile {
  override readonly name = 'LeaseLost';
}

/** Both methods throw LeaseLost where the lease is another's by now. */
export interface EnvironmentLease {
  /** A transaction that ends before another process can take the environment. */
  write<T>(work: (tx: Db) => Promise<T>): Promise<T>;
  /** To be called right before an engine is told to do what cannot be undone: the lease then lasts its full time. */
  confirm(): Promise<void>;
}

type WriteMany = (tx: Db, isHeld: (key: EnvironmentKey) => boolean) => Promise<void>;

export interface EnvironmentLeases {
  /** Takes or renews the lease; null: another process has it. */
  hold(key: EnvironmentKey): Promise<EnvironmentLease | null>;
  /**
   * Renews those that this process has, all at once, with what is to be written under them. Gives the names of those that it
   * still has.
   */
  renew(keys: EnvironmentKey[], write: WriteMany): Promise<ReadonlySet<string>>;
  /** Whether this process has the lease, as far as it knows without asking. */
  holds(key: EnvironmentKey): boolean;
  /** The environment has nothing to reconcile any more. */
  release(key: EnvironmentKey): Promise<void>;
  releaseAll(): Promise<void>;
}

export function onlyProcess(db: Db): EnvironmentLeases {
  const lease: EnvironmentLease = { write: (work) => db.transaction().execute(work), confirm: async () => {} };
  return {
    hold: async () => lease,
    async renew(keys, write) {
      await lease.write((tx) => write(tx, () => true));
      return new Set(keys.map(keyText));
    },
    holds: () => true,
    release: async () => {},
    releaseAll: async () => {},
  };
}

export function databaseLeases(db: Db, owner: string, clock: Clock, leaseMs = defaultLeaseMs): EnvironmentLeases {
  const monotonic = monotonicOf(clock);
  const held = new Map<string, { lease: EnvironmentLease; fence: number; renewedAt: number }>();
  const until = sql<number>`${postgresNow} + ${leaseMs}`;

  const leaseOf = (key: EnvironmentKey, fence: number): EnvironmentLease => {
    const lost = (): never => {
      held.delete(keyText(key));
      throw new EnvironmentLeaseLost();
    };
    return {
      write: (work) =>
        db.transaction().execute(async (tx) => {
          // The lock makes a process that takes the lease wait until this transaction has ended.
          const own = tx.selectFrom('environment_lease').select('fence').where(isOf(key)).where('fence', '=', fence);
          if (!(await own.forShare().executeTakeFirst())) lost();
          return work(tx);
        }),
      async confirm() {
        const renew = db.updateTable('environment_lease').set({ until }).where(isOf(key)).where('fence', '=', fence);
        if ((await renew.executeTakeFirst()).numUpdatedRows === 0n) lost();
      },
    };
  };

  return {
    async hold(key) {
      const name = keyText(key);
      const nowMs = monotonic.now();
      const known = held.get(name);
      if (known && nowMs - known.renewedAt < leaseMs / 2) return known.lease;
      const taken = await take(db, key, owner, until);
      held.delete(name);
      if (taken === null) return null;
      const lease = leaseOf(key, taken);
      held.set(name, { lease, fence: taken, renewedAt: nowMs });
      return lease;
    },
    async renew(keys, write) {
      const nowMs = monotonic.now();
      const known = keys.flatMap(({ projectId: project_id, environment }) => {
        const fence = held.get(keyText({ projectId: project_id, environment }))?.fence;
        return fence === undefined ? [] : [{ project_id, environment, fence }];
      });
      const renewed = await db.transaction().execute(async (tx) => {
        const names = await renewAll(tx, known, until);
        await write(tx, (key) => names.has(keyText(key)));
        return names;
      });
      for (const { fence, ...row } of known) {
        const name = keyText(keyOf(row));
        const lease = held.get(name);
        if (lease?.fence !== fence) continue;
        if (renewed.has(name)) lease.renewedAt = nowMs;
        else held.delete(name);
      }
      return renewed;
    },
    holds(key) {
      const known = held.get(keyText(key));
      return known !== undefined && monotonic.now() - known.renewedAt < leaseMs;
    },
    async release(key) {
      held.delete(keyText(key));
      await db.deleteFrom('environment_lease').where(isOf(key)).where('owner', '=', owner).execute();
    },
    async releaseAll() {
      await db.deleteFrom('environment_lease').where('owner', '=', owner).execute();
      held.clear();
    },
  };
}

/** Gives the names of those whose fence is still the same. */
async function renewAll(
  tx: Db,
  known: { project_id: string; environment: string; fence: number }[],
  until: ReturnType<typeof sql<number>>,
): Promise<Set<string>> {
  if (known.length === 0) return new Set();
  const rows = jsonRows(tx, known, { project_id: 'text', environment: 'text', fence: 'bigint' });
  const { rows: renewed } = await sql<{ project_id: string; environment: string }>`
    update environment_lease set until = ${until} from ${rows}
    where environment_lease.project_id = r.project_id and environment_lease.environment = r.environment
      and environment_lease.fence = r.fence
    returning environment_lease.project_id, environment_lease.environment`.execute(tx);
  return new Set(renewed.map((row) => keyText(keyOf(row))));
}

const isOf = ({ projectId, environment }: EnvironmentKey) =>
  sql<boolean>`environment_lease.project_id = ${projectId} and environment_lease.environment = ${environment}`;

/** Gives the fence: the same as before for a holder that renews, a new one for any other. */
async function take(
  db: Db,
  { projectId, environment }: EnvironmentKey,
  owner: string,
  until: ReturnType<typeof sql<number>>,
): Promise<number | null> {
  const row = await db
    .insertInto('environment_lease')
    .values({ project_id: projectId, environment, owner, until })
    .onConflict((conflict) =>
      conflict
        .columns(['project_id', 'environment'])
        .doUpdateSet((e) => ({
          owner,
          until: e.ref('excluded.until'),
          fence: e
            .case()
            .when('environment_lease.owner', '=', owner)
            .then(e.ref('environment_lease.fence'))
            .else(e.ref('excluded.fence'))
            .end(),
        }))
        .where((e) => e.or([e('environment_lease.owner', '=', owner), e('environment_lease.until', '<', postgresNow)])),
    )
    .returning('fence')
    .executeTakeFirst();
  return row?.fence ?? null;
}
