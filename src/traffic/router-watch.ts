// Draining by acknowledgement: an instance may be stopped when every live router has a table in force without it. A
// router lives as long as its beat rises. A router whose beat stands still for the time of its lease does not count:
// whether that time is over is measured by the watching process, so it does not matter whether clocks agree.
import type { Selectable } from 'kysely';
import type { Db } from '../db/database.ts';
import type { Tables } from '../db/tables.ts';
import { type Clock, monotonicOf } from '../lib/clock.ts';

type RouterRow = Selectable<Tables['router']>;

/** Time between two checks counts for this much at most, so that a clock that jumps ends no lease. */
const longestStepMs = 1000;
/** The row of a router that ended without saying so is deleted after this many times its lease. */
const sweepAfterLeases = 10;

/** In the transaction that takes an instance out of the table: the version of the table without it. */
export async function insertDrain(tx: Db, instanceId: string, version: number): Promise<void> {
  await tx
    .insertInto('instance_drain')
    .values({ instance_id: instanceId, version, unrouted_at: null })
    .onConflict((conflict) => conflict.column('instance_id').doUpdateSet({ version, unrouted_at: null }))
    .execute();
}

interface WatchParts {
  db: Db;
  clock: Clock;
  leaseMs: number;
}

export class RouterWatch {
  readonly #parts: WatchParts;
  /** By instance: since when this process knows that no router sends it requests. */
  readonly #unroutedSince = new Map<string, number>();
  readonly #silent = new Map<string, { beat: number; silentMs: number }>();
  #checkedAt: number | null = null;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /**
   * For how long no live router has sent requests to a draining instance, as far as this process can tell: a time that
   * another has stored may be by a clock that was wrong. Null: a router may still send some.
   */
  async unroutedForMs(instanceId: string): Promise<number | null> {
    if (!this.#unroutedSince.has(instanceId)) {
      if (!(await this.#isUnrouted(instanceId))) return null;
      this.#unroutedSince.set(instanceId, this.#monotonicMs());
    }
    return this.#monotonicMs() - this.#unroutedSince.get(instanceId)!;
  }

  async #isUnrouted(instanceId: string): Promise<boolean> {
    const { db, clock } = this.#parts;
    const drain = await db
      .selectFrom('instance_drain')
      .select(['version', 'unrouted_at'])
      .where('instance_id', '=', instanceId)
      .executeTakeFirst();
    if (drain?.unrouted_at) return true;
    const version = drain?.version ?? 0;
    const live = this.#live(await db.selectFrom('router').selectAll().execute());
    if (live.some((router) => router.version < version)) return false;
    const unrouted_at = clock.now();
    await db.updateTable('instance_drain').set({ unrouted_at }).where('instance_id', '=', instanceId).execute();
    return true;
  }

  /** The lowest version that a live router has in force; without any, higher than all. */
  async leastInForce(): Promise<number> {
    const live = this.#live(await this.#parts.db.selectFrom('router').selectAll().execute());
    return Math.min(Number.MAX_SAFE_INTEGER, ...live.map(({ version }) => version));
  }

  /** Deletes the rows of routers that ended long ago, and forgets instances that are gone. */
  async sweep(): Promise<void> {
    const { db, leaseMs } = this.#parts;
    const drains = await db.selectFrom('instance_drain').select('instance_id').execute();
    const draining = new Set(drains.map(({ instance_id }) => instance_id));
    for (const id of this.#unroutedSince.keys()) if (!draining.has(id)) this.#unroutedSince.delete(id);
    this.#live(await db.selectFrom('router').selectAll().execute());
    for (const [id, { beat, silentMs }] of this.#silent) {
      if (silentMs < leaseMs * sweepAfterLeases) continue;
      await db.deleteFrom('router').where('id', '=', id).where('beat', '=', beat).execute();
    }
  }

  #monotonicMs(): number {
    return monotonicOf(this.#parts.clock).now();
  }

  #live(rows: RouterRow[]): RouterRow[] {
    const nowMs = this.#monotonicMs();
    const passedMs = Math.min(Math.max(0, nowMs - (this.#checkedAt ?? nowMs)), longestStepMs);
    this.#checkedAt = nowMs;
    const ids = new Set(rows.map(({ id }) => id));
    for (const id of this.#silent.keys()) if (!ids.has(id)) this.#silent.delete(id);
    return rows.filter(({ id, beat }) => {
      const known = this.#silent.get(id);
      const silentMs = known?.beat === beat ? known.silentMs + passedMs : 0;
      this.#silent.set(id, { beat, silentMs });
      return silentMs < this.#parts.leaseMs;
    });
  }
}
