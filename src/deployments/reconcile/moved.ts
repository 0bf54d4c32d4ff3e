// Instances that are no longer where the routing table says: their engine restarted, or somebody restarted them by hand.
// What is at their old address now may be anyone's, so they leave the table in the same moment, all of a region at once,
// before anything is started. Each comes back when its own look finds it healthy at its new address.
import type { Db } from '../../db/database.ts';
import type { EngineInstance } from '../../engines/engine.ts';
import { type EnvironmentKey, keyOf, keyText } from '../../environments/key.ts';
import { type Clock, lastingOf } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { publish } from '../../signals/signals.ts';
import { markRoutingChanged } from '../../traffic/queries.ts';
import { listRouted, markInstance, type RoutedRow } from '../instances.ts';

type Running = ReadonlyMap<string, EngineInstance>;

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

export function unrouteMoved({ db, clock, log }: MovedParts): (region: string, running: Running) => Promise<void> {
  const last = new Map<string, Running>();
  return async (region, running) => {
    const before = last.get(region);
    if (hasMoved(before, running)) {
      const moved = (await listRouted(db, region)).filter((row) => isElsewhere(row, before, running));
      if (moved.length > 0) await unroute(db, moved, lastingOf(clock).now());
      for (const { id } of moved) log.info({ instance: id, region }, 'an instance is not where it was');
    }
    last.set(region, running);
  };
}

/** Of one that the engine never had, the look at its environment finds out what became of it. */
function isElsewhere({ id, host, port }: RoutedRow, before: Running | undefined, running: Running): boolean {
  if (!running.has(id) && !before?.has(id)) return false;
  return addressOf(running.get(id)?.address) !== `${host} ${port}`;
}

/** Needs no lease: that the instance is not there is so for every process, and only a healthy one is changed. */
async function unroute(db: Db, moved: RoutedRow[], nowMs: number): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const changed = new Map<string, EnvironmentKey>();
    for (const row of moved) {
      const isMarked = await markInstance(tx, row.id, ['healthy'], 'unhealthy', nowMs);
      if (isMarked) changed.set(keyText(keyOf(row)), keyOf(row));
    }
    // After all rows: others change a row first, too, and the version of the table then.
    for (const key of changed.values()) {
      await markRoutingChanged(tx, key);
      publish(tx, 'environments', key);
    }
  });
}
