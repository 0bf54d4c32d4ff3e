// What the engines run. Passes at about the same time share one list, until something changes.
//
// Every new list is also compared with the routing table. An instance that is no longer at its address there (its
// engine restarted, or somebody restarted it by hand) leaves the table at once, before anything is started: whatever is
// at its old address now may belong to someone else. It comes back when a pass finds it healthy at its new address.
import type { Db } from '../../db/database.ts';
import type { EngineInstance } from '../../engines/engine.ts';
import { type EnvironmentKey, keyOf, keyText } from '../../environments/environment-key.ts';
import { type Clock, deadlineOf } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { RegionState } from '../../regions/regions.ts';
import { publish } from '../../signals/signals.ts';
import { markRoutingChanged } from '../../traffic/traffic-queries.ts';
import { listRouted, type RoutedRow, unrouteInstance } from '../instance-queries.ts';

const sharedForMs = 150;
/** A list that takes long is shared for longer, so that listing takes at most a tenth of the time. */
const sharedForTimes = 10;
const longestSharedMs = 2000;

interface Shared {
  until: number;
  list: Promise<Running>;
}

/** By the instance's id. */
type Running = ReadonlyMap<string, EngineInstance>;

/** Called with every new list before a pass gets it, so that it acts before anything is started. */
type OnEngineList = (region: string, running: Running, listAgain: () => Promise<Running>) => Promise<void>;

export class EngineLists {
  readonly #lists = new Map<string, Shared>();
  readonly #clock: Clock;
  readonly #onList: OnEngineList;

  constructor(clock: Clock, onList: OnEngineList) {
    this.#clock = clock;
    this.#onList = onList;
  }

  of({ name, engine }: RegionState): Promise<Running> {
    const nowMs = this.#clock.now();
    const known = this.#lists.get(name);
    if (known && nowMs < known.until) return known.list;
    const ask = async () => new Map((await engine.list()).map((instance) => [instance.id, instance]));
    const list = ask().then(async (running) => {
      await this.#onList(name, running, ask);
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

  /** Something changed: the next pass asks the engine again. */
  clear(): void {
    this.#lists.clear();
  }
}

interface MovedParts {
  db: Db;
  clock: Clock;
  log: Log;
}

const addressOf = (address: EngineInstance['address'] | undefined): string =>
  address ? `${address.host} ${address.port}` : '';

/** Whether an instance has lost the address it had. Only then are the rows read. */
function hasMoved(before: Running | undefined, now: Running): boolean {
  if (!before) return true;
  for (const [id, { address }] of before) {
    if (address && addressOf(address) !== addressOf(now.get(id)?.address)) return true;
  }
  return false;
}

export function unrouteMoved(parts: MovedParts): OnEngineList {
  const last = new Map<string, Running>();
  // Remembered only after the rows are updated, so that a failure is tried again.
  return async (region, running, listAgain) => {
    last.set(region, await unrouteMovedInstances(parts, region, last.get(region), running, listAgain));
  };
}

/** Returns the latest list. */
async function unrouteMovedInstances(
  { db, clock, log }: MovedParts,
  region: string,
  before: Running | undefined,
  running: Running,
  listAgain: () => Promise<Running>,
): Promise<Running> {
  if (!hasMoved(before, running)) return running;
  // An instance that the engine never had is left to the pass of its environment.
  const known = (await listRouted(db, region)).filter(({ id }) => before?.has(id) || running.has(id));
  const missing = known.filter((row) => !isAt(row, running));
  if (missing.length === 0) return running;
  // The rows are newer than the list: one that is healthy now may have been about to start when the list was made.
  const now = await listAgain();
  const moved = missing.filter((row) => !isAt(row, now));
  if (moved.length > 0) await unroute(db, moved, deadlineOf(clock).now());
  for (const { id } of moved) log.info({ instance: id, region }, 'an instance is not where it was');
  return now;
}

const isAt = ({ id, host, port }: RoutedRow, running: Running): boolean =>
  addressOf(running.get(id)?.address) === `${host} ${port}`;

/** Needs no lease: the instance is gone for every process, and only healthy rows are changed. */
async function unroute(db: Db, moved: RoutedRow[], nowMs: number): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const changed = new Map<string, EnvironmentKey>();
    for (const row of moved) {
      if (await unrouteInstance(tx, row, nowMs)) changed.set(keyText(keyOf(row)), keyOf(row));
    }
    // After all rows: everyone locks instances first and the routing version last.
    for (const key of changed.values()) {
      await markRoutingChanged(tx, key);
      publish(tx, 'environments', key);
    }
  });
}
