// Rings in every process that shares the database when something was committed in one of them: an event, or a change that
// people may be looking at. Transactions that ring (NOTIFY) wait for each other's commits, so of each process only one at
// a time does; all others ring after the commit, by a statement of its own. Who needs to hear every ring has to look from
// time to time as well, for a ring can get lost.
import { type Change, markRung, onCommit, rootOf } from '../db/after-commit.ts';
import type { Db } from '../db/database.ts';
import { openLine } from '../db/line.ts';
import type { Log } from '../lib/log.ts';

const channel = 'sluice_event';
/** A message of PostgreSQL has at most 8,000 bytes. Who misses a change reads again at the next one. */
const maxChanges = 50;

export interface Bell {
  stop(): Promise<void>;
}

export interface BellParts {
  db: Db;
  /** null: there is no other process. */
  databaseUrl: string | null;
  /** Unlike that of any other process. */
  id: string;
  log: Log;
  /** An event was committed, or may have been. */
  heard(): void;
  changed(changes: Change[]): void;
}

/** What the processes say to each other. */
interface Ring {
  from: string;
  event: boolean;
  changes: Change[];
}

/** What may ring within a transaction of a database; each process has one. */
const withinTransactions = new WeakMap<Db, { message: string; ringing: boolean }>();

/** What a transaction that writes an event is to NOTIFY; null: nothing, it is rung for afterwards. */
export function takeRing(tx: Db): { channel: string; message: string } | null {
  const own = withinTransactions.get(rootOf(tx));
  if (!own || own.ringing) return null;
  const settled = () => {
    own.ringing = false;
  };
  if (!markRung(tx, settled)) return null;
  own.ringing = true;
  return { channel, message: own.message };
}

export function startBell({ db, databaseUrl, id, log, heard, changed }: BellParts): Bell {
  const others = databaseUrl === null ? null : reachOthers(databaseUrl, { id, log, heard, changed });
  if (others) {
    const ring: Ring = { from: id, event: true, changes: [] };
    withinTransactions.set(db, { message: JSON.stringify(ring), ringing: false });
  }
  const forgetEvents = onCommit(db, 'event', (rung) => {
    heard();
    if (!rung) others?.ring(true, []);
  });
  const forgetChanges = onCommit(db, 'change', (changes) => {
    changed(changes);
    others?.ring(false, changes);
  });
  return {
    async stop() {
      withinTransactions.delete(db);
      forgetEvents();
      forgetChanges();
      await others?.stop();
    },
  };
}

/** The first of many rings goes out at once; those that come while it does go out together. */
function reachOthers(databaseUrl: string, { id, log, heard, changed }: Omit<BellParts, 'db' | 'databaseUrl'>) {
  const line = openLine(databaseUrl, channel, (text) => {
    const ring = text === null ? null : (JSON.parse(text) as Ring);
    if (ring?.from === id) return;
    if (ring === null || ring.event) heard();
    if (ring !== null && ring.changes.length > 0) changed(ring.changes);
  });
  let waiting: Ring | null = null;
  let ringing = false;
  const send = async () => {
    ringing = true;
    while (waiting !== null) {
      const message = JSON.stringify({ ...waiting, changes: waiting.changes.slice(0, maxChanges) });
      waiting = null;
      await line.say(message).catch((error) => log.debug({ err: error }, 'other processes were not woken'));
    }
    ringing = false;
  };
  return {
    ring(event: boolean, changes: Change[]) {
      waiting ??= { from: id, event: false, changes: [] };
      waiting.event ||= event;
      waiting.changes.push(...changes);
      if (!ringing) void send();
    },
    stop: () => line.stop(),
  };
}
