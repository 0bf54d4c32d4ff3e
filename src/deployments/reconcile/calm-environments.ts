// Environments in which there is nothing to do: the instances that they should have run and are healthy, and nothing else is
// there. They get a pass when something changes, and otherwise every ten minutes or so. Meanwhile they are looked after
// together: their leases are renewed, their health checks go on and are saved, and their rows and what their engines run
// are compared with what their last pass saw.
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { jsonRows } from '../../db/prepared.ts';
import type { EngineInstance } from '../../engines/engine.ts';
import { type EnvironmentKey, keyOf, keyText } from '../../environments/environment-key.ts';
import type { Clock } from '../../lib/clock.ts';
import type { EnvironmentLeases } from './environment-leases.ts';
import type { HealthWatch } from './health-checks.ts';
import type { Observation, ObservedRegion, Reachable } from './reconcile-context.ts';
import { checkSavedEveryMs } from './refresh-instances.ts';

/** Sweeps come earlier than planned after every removal. */
const leastBetweenMs = 3000;

interface Calm {
  key: EnvironmentKey;
  region: string;
  /** What its rows say. */
  rows: string;
  /** By instance: what its engine says of it, and when its health check was saved. */
  instances: Map<string, { found: string; checkedAt: number }>;
}

interface Parts {
  db: Db;
  leases: EnvironmentLeases;
  health: HealthWatch;
  deadlineClock: Clock;
}

/** Whether there is nothing to do but to wait for a change. */
export function isCalm(seen: Observation): seen is Reachable {
  const { active, environment, instances, sets, busy, rollout, region } = seen;
  return (
    active !== null &&
    region !== null &&
    rollout === null &&
    environment.health_state === 'healthy' &&
    instances.length === environment.replicas &&
    instances.every(({ id, state, revision }) => state === 'healthy' && revision === active.number && !busy.has(id)) &&
    sets.every(({ revision }) => revision === active.number)
  );
}

export class CalmEnvironments {
  readonly #known = new Map<string, Calm>();
  readonly #parts: Parts;
  #renewedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  note({ key, environment, instances, region }: Reachable): void {
    const since = Math.max(...instances.map(({ state_since }) => state_since));
    this.#known.set(keyText(key), {
      key,
      region: region.name,
      rows: rowsText(environment.version, instances.length, since),
      instances: new Map(
        instances.map(({ id, checked_at }) => [
          id,
          { found: textOf(region.running.get(id)), checkedAt: checked_at ?? 0 },
        ]),
      ),
    });
  }

  forget(key: EnvironmentKey): void {
    this.#known.delete(keyText(key));
  }

  has(key: EnvironmentKey): boolean {
    return this.#known.has(keyText(key));
  }

  hasAnyIn(region: string): boolean {
    return this.#known.values().some((calm) => calm.region === region);
  }

  /** Renews leases and health checks. Gives the environments whose rows have changed, or whose lease or checks have ended. */
  async renew(nowMs: number): Promise<EnvironmentKey[]> {
    const { db, leases, health } = this.#parts;
    const calm = [...this.#known.values()];
    if (calm.length === 0 || nowMs - this.#renewedAt < leastBetweenMs) return [];
    this.#renewedAt = nowMs;
    const keys = calm.map(({ key }) => key);
    const held = await leases.renew(keys, async (tx, isHeld) => {
      const checks = calm.filter(({ key }) => isHeld(key)).flatMap((one) => this.#takeChecks(one));
      if (checks.length > 0) await saveCheckTimes(tx, checks);
    });
    const rows = await readRows(db);
    return calm.flatMap(({ key, rows: known }) => {
      const name = keyText(key);
      return held.has(name) && rows.get(name) === known && health.renew(key) ? [] : [key];
    });
  }

  /** Those of which the engine does not say any more what it said. */
  changedIn({ name, running }: ObservedRegion): EnvironmentKey[] {
    const changed: EnvironmentKey[] = [];
    for (const { key, region, instances } of this.#known.values()) {
      if (region !== name) continue;
      if (![...instances].every(([id, { found }]) => textOf(running.get(id)) === found)) changed.push(key);
    }
    return changed;
  }

  /** The times of the health checks that are to be saved. */
  #takeChecks({ instances }: Calm): SavedCheck[] {
    const { health, deadlineClock } = this.#parts;
    const checks: SavedCheck[] = [];
    for (const [id, instance] of instances) {
      const last = health.lastCheckOf(id);
      const checkedAt = last ? Math.round(deadlineClock.now() - last.agoMs) : instance.checkedAt;
      if (Math.abs(checkedAt - instance.checkedAt) < checkSavedEveryMs) continue;
      instance.checkedAt = checkedAt;
      checks.push({ id, checked_at: checkedAt });
    }
    return checks;
  }
}

const textOf = (found: EngineInstance | undefined): string =>
  found
    ? JSON.stringify([found.state, found.address, found.node, found.ready, found.hostAway, found.endedWithEngine])
    : '';

const rowsText = (version: number, instances: number, since: number): string => `${version} ${instances} ${since}`;

/** By environment: whether its settings or its instances have changed shows in it. */
async function readRows(db: Db): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom('instance')
    .innerJoin('environment', (join) =>
      join
        .onRef('environment.project_id', '=', 'instance.project_id')
        .onRef('environment.name', '=', 'instance.environment'),
    )
    .select((e) => [
      'instance.project_id',
      'instance.environment',
      'environment.version',
      e.fn.countAll().as('instances'),
      e.fn.max('instance.state_since').as('since'),
    ])
    .groupBy(['instance.project_id', 'instance.environment', 'environment.version'])
    .execute();
  return new Map(
    rows.map((row) => [keyText(keyOf(row)), rowsText(row.version, Number(row.instances), Number(row.since))]),
  );
}

interface SavedCheck {
  id: string;
  checked_at: number;
}

async function saveCheckTimes(tx: Db, checks: SavedCheck[]): Promise<void> {
  const rows = jsonRows(tx, checks, { id: 'text', checked_at: 'bigint' });
  await sql`update instance set checked_at = r.checked_at from ${rows} where instance.id = r.id`.execute(tx);
}
