// Draining by acknowledgement: an instance may be stopped when every live router has a table in force without it. A
// router lives as long as its beat rises. A router whose beat stands still for the time of its lease does not count:
// whether that time is over is measured by the watching process, so it does not matter whether clocks agree. What was
// measured is stored every second, and another process goes on from there: none has to live as long as a lease or a drain.
import type { Selectable } from 'kysely';
import type { Db } from '../db/database.ts';
import type { Tables } from '../db/tables.ts';
import { type Clock, monotonicOf } from '../lib/clock.ts';

type RouterRow = Selectable<Tables['router']>;

/** Time between two checks counts for this much at most, so that a clock that jumps ends no lease. */
const longestStepMs = 1000;
/** The row of a router that ended without saying so is deleted after this many times its lease. */
const sweepAfterLeases = 10;
const storedEveryMs = 1000;

/** In the transaction that takes an instance out of the table: the version of the table without it. */
export async function insertDrain(tx: Db, instanceId: string, version: number): Promise<void> {
  await tx
    .insertInto('instance_drain')
    .values({ instance_id: instanceId, version, unrouted_at: null })
    .onConflict((conflict) =>
      conflict.column('instance_id').doUpdateSet({ version, unrouted_at: null, unrouted_ms: 0 }),
    )
    .execute();
}

interface WatchParts {
  db: Db;
  clock: Clock;
  leaseMs: number;
}

export class RouterWatch {
  readonly #parts: WatchParts;
  /** By instance: since when no router sends it requests, as far as processes have watched. */
  readonly #unrouted = new Map<string, { since: number; storedMs: number }>();
  readonly #silent = new Map<string, { beat: number; silentMs: number }>();
  #checkedAt: number | null = null;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /**
   * For how long no live router has sent requests to a draining instance, as processes have measured it: a time of day that
   * another has stored may be by a clock that was wrong. Null: a router may still send some.
   */
  async unroutedForMs(instanceId: string): Promise<number | null> {
    const known = this.#unrouted.get(instanceId) ?? (await this.#findUnrouted(instanceId));
    if (!known) return null;
    this.#unrouted.set(instanceId, known);
    const ms = Math.floor(this.#monotonicMs() - known.since);
    if (ms - known.storedMs >= storedEveryMs) {
      known.storedMs = ms;
      await this.#parts.db
        .updateTable('instance_drain')
        .set({ unrouted_ms: ms })
        .where('instance_id', '=', instanceId)
        .where('unrouted_ms', '<', ms)
        .execute();
    }
    return ms;
  }

  async #findUnrouted(instanceId: string): Promise<{ since: number; storedMs: number } | null> {
    const { db, clock } = this.#parts;
    const drain = await db
      .selectFrom('instance_drain')
      .select(['version', 'unrouted_at', 'unrouted_ms'])
      .where('instance_id', '=', instanceId)
      .executeTakeFirst();
    const storedMs = drain?.unrouted_ms ?? 0;
    if (!drain?.unrouted_at) {
      const version = drain?.version ?? 0;
      if ((await this.#listLive()).some((router) => router.version < version)) return null;
      const unrouted_at = clock.now();
      await db.updateTable('instance_drain').set({ unrouted_at }).where('instance_id', '=', instanceId).execute();
    }
    return { since: this.#monotonicMs() - storedMs, storedMs };
  }

  /** The lowest version that a live router has in force; without any, higher than all. */
  async leastInForce(): Promise<number> {
    return Math.min(Number.MAX_SAFE_INTEGER, ...(await this.#listLive()).map(({ version }) => version));
  }

  /** Deletes the rows of routers that ended long ago, and forgets instances that are gone. */
  async sweep(): Promise<void> {
    const { db, leaseMs } = this.#parts;
    const drains = await db.selectFrom('instance_drain').select('instance_id').execute();
    const draining = new Set(drains.map(({ instance_id }) => instance_id));
    for (const id of this.#unrouted.keys()) if (!draining.has(id)) this.#unrouted.delete(id);
    await this.#listLive();
    for (const [id, { beat, silentMs }] of this.#silent) {
      if (silentMs < leaseMs * sweepAfterLeases) continue;
      await db.deleteFrom('router').where('id', '=', id).where('beat', '=', beat).execute();
    }
  }

  #monotonicMs(): number {
    return monotonicOf(this.#parts.clock).now();
  }

  async #listLive(): Promise<RouterRow[]> {
    const { db, leaseMs } = this.#parts;
    const rows = await db.selectFrom('router').selectAll().execute();
    const nowMs = this.#monotonicMs();
    const passedMs = Math.min(Math.max(0, nowMs - (this.#checkedAt ?? nowMs)), longestStepMs);
    this.#checkedAt = nowMs;
    const ids = new Set(rows.map(({ id }) => id));
    for (const id of this.#silent.keys()) if (!ids.has(id)) this.#silent.delete(id);
    for (const { id, beat, silent_beat, silent_ms } of rows) {
      const known = this.#silent.get(id);
      const storedMs = silent_beat === beat ? silent_ms : 0;
      const silentMs = Math.max(storedMs, known?.beat === beat ? known.silentMs + passedMs : 0);
      this.#silent.set(id, { beat, silentMs });
      if (silentMs - storedMs >= storedEveryMs) await this.#storeSilence(id, beat, Math.floor(silentMs));
    }
    return rows.filter(({ id }) => this.#silent.get(id)!.silentMs < leaseMs);
  }

  async #storeSilence(id: string, beat: number, silent_ms: number): Promise<void> {
    await this.#parts.db
      .updateTable('router')
      .set({ silent_beat: beat, silent_ms })
      .where('id', '=', id)
      .where('beat', '=', beat)
      .where((e) => e.or([e('silent_beat', '!=', beat), e('silent_ms', '<', silent_ms)]))
      .execute();
  }
}
