// Measures every ten seconds what instances use. Each region has a loop of its own, so that an engine that hangs delays
// no other, and nothing else waits for these loops. Of several processes each measures the environments that it
// reconciles.
import type { Db } from '../db/database.ts';
import { type EnvironmentKey, keyOf } from '../environments/environment-key.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Loop, Loops } from '../lib/loops.ts';
import type { RegionState, Regions } from '../regions/regions.ts';
import { listInstancesIn } from './instance-queries.ts';
import { insertUsage } from './usage-queries.ts';

const everyMs = 10_000;

interface UsageMeterParts {
  db: Db;
  clock: Clock;
  log: Log;
  loops: Loops;
  regions: Regions;
  /** Whether this process reconciles the environment. */
  holds(key: EnvironmentKey): boolean;
}

export class UsageMeter {
  readonly #parts: UsageMeterParts;
  readonly #stopped = Promise.withResolvers<null>();
  #running: Loop[] = [];

  constructor(parts: UsageMeterParts) {
    this.#parts = parts;
  }

  start(): void {
    const { loops, regions } = this.#parts;
    this.#running = regions
      .all()
      .filter(({ engine }) => engine.usage !== undefined)
      .map((region) =>
        loops.start({
          name: `usage in region ${region.name}`,
          intervalMs: everyMs,
          step: () => measureUsage(this.#parts, region, this.#stopped.promise),
        }),
      );
  }

  /** Does not wait for engines. */
  async stop(): Promise<void> {
    this.#stopped.resolve(null);
    await Promise.all(this.#running.map((loop) => loop.stop()));
  }
}

const never = new Promise<null>(() => {});

/** One round; it ends without a result when it is `stopped`. */
export async function measureUsage(
  { db, clock, log, holds }: Omit<UsageMeterParts, 'loops' | 'regions'>,
  { name, engine, available }: RegionState,
  stopped: Promise<null> = never,
): Promise<void> {
  if (!available || !engine.usage) return;
  const rows = (await listInstancesIn(db, name)).filter((row) => holds(keyOf(row)));
  if (rows.length === 0) return;
  const at = Math.round(clock.now());
  const asked = engine.usage(rows.map(({ id }) => id));
  const usage = await Promise.race([asked, stopped]);
  if (usage === null) return;
  if (usage.size === 0) log.debug({ region: name, instances: rows.length }, 'the engine did not say what is used');
  const measured = rows.flatMap(({ id, project_id, environment, revision }) => {
    const used = usage.get(id);
    if (!used) return [];
    const { memoryBytes: memory_bytes, cpuMs: cpu_ms } = used;
    return [{ project_id, environment, revision, instance_id: id, at, memory_bytes, cpu_ms }];
  });
  await insertUsage(db, measured);
}
