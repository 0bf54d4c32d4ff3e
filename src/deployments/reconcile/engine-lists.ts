import type { Db } from '../../db/database.ts';
import type { EngineInstance } from '../../engines/engine.ts';
import { type EnvironmentKey, keyOf, keyText } from '../../environments/environment-key.ts';
import { type Clock, lastingOf } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { RegionState } from '../../regions/regions.ts';
import { publish } from '../../signals/signals.ts';
import { markRoutingChanged } from '../../traffic/queries.ts';
import { listRouted, type RoutedRow, unrouteInstance } from '../instance-queries.ts';

const sharedForMs = 150;
/** A long list is shared for longer, so that getting it takes a tenth of the time at most, however many instances run. */
const sharedForTimes = 10;
const longestSharedMs = 2000;

interface Shared {
  until: number;
  list: Promise<Running>;
}

/** By the instance's id. */
type Running = ReadonlyMap<string, EngineInstance>;

/** Called with every list before any look has it: what a look starts comes after what this does. */
type OnEngineList = (region: string, running: Running, listAgain: () => Promise<Running>) => Promise<void>;

/** What the engines run. Looks at about the same time share one question to the engine, until something changes. */
export class EngineLists {
  readonly #lists = new Map<string, Shared>();
  readonly #clock: Clock;
  readonly #heed: OnEngineList;

  constructor(clock: Clock, heed: OnEngineList) {
    this.#clock = clock;
    this.#heed = heed;
  }

  of({ name, engine }: RegionState): Promise<Running> {
    const nowMs = this.#clock.now();
    const known = this.#lists.get(name);
    if (known && nowMs < known.until) return known.list;
    const ask = async () => new Map((await engine.list()).map((instance) => [instance.id, instance]));
    const list = ask().then(async (running) => {
      await this.#heed(name, running, ask);
      const tookMs = this.#clock.now() - nowMs;
      shared.until = Math.max(shared.until, nowMs + Math.min(tookMs * sharedForTimes, longestSharedMs));
      return running;
    });
    const shared = { until: nowMs + sharedForMs, list };
    this.#lists.set(name, shared);
    list.catch(() => {
      if (this.#lists.get(name) === shared) this.#lists.delete(name);
    });
    return list;
  }

  /** Something changed: the next look asks the engine again. */
  clear(): void {
    this.#lists.clear();
  }
}

// Instances that are no longer where the routing table says: their engine restarted, or somebody restarted them by hand.
// What is at their old address now may be anyone's, so they leave the table in the same moment, all of a region at once,
// before anything is started. Each comes back when its own look finds it healthy at its new address.

interface MovedParts {
  db: Db;
  clock: Clock;
  log: Log;
}

const addressOf = (address: EngineInstance['address'] | undefined): string =>
  address ? `${address.host} ${address.port}` : '';

/** Whether an instance that was reached at an address is not any more. The rows are read only then. */
function hasMoved(before: Running | undefined, now: Running): boolean {
  if (!before) return true;
  for (const [id, { address }] of before) {
    if (address && addressOf(address) !== addressOf(now.get(id)?.address)) return true;
  }
  return false;
}

export function unrouteMoved(parts: MovedParts): OnEngineList {
  const last = new Map<string, Running>();
  // Remembered only once what follows from it is done.
  return async (region, running, listAgain) => {
    last.set(region, await unrouteMovedInstances(parts, region, last.get(region), running, listAgain));
  };
}

/** Gives the latest list. */
async function unrouteMovedInstances(
  { db, clock, log }: MovedParts,
  region: string,
  before: Running | undefined,
  running: Running,
  listAgain: () => Promise<Running>,
): Promise<Running> {
  if (!hasMoved(before, running)) return running;
  // Of one that the engine never had, the look at its environment finds out what became of it.
  const known = (await listRouted(db, region)).filter(({ id }) => before?.has(id) || running.has(id));
  const missing = known.filter((row) => !isAt(row, running));
  if (missing.length === 0) return running;
  // The rows are newer than the list: one that is healthy by now may have been about to start when it was made.
  const now = await listAgain();
  const moved = missing.filter((row) => !isAt(row, now));
  if (moved.length > 0) await unroute(db, moved, lastingOf(clock).now());
  for (const { id } of moved) log.info({ instance: id, region }, 'an instance is not where it was');
  return now;
}

const isAt = ({ id, host, port }: RoutedRow, running: Running): boolean =>
  addressOf(running.get(id)?.address) === `${host} ${port}`;

/** Needs no lease: that the instance is not there is so for every process, and only a healthy one is changed. */
async function unroute(db: Db, moved: RoutedRow[], nowMs: number): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const changed = new Map<string, EnvironmentKey>();
    for (const row of moved) {
      if (await unrouteInstance(tx, row, nowMs)) changed.set(keyText(keyOf(row)), keyOf(row));
    }
    // After all rows: others change a row first, too, and the version of the table then.
    for (const key of changed.values()) {
      await markRoutingChanged(tx, key);
      publish(tx, 'environments', key);
    }
  });
}
