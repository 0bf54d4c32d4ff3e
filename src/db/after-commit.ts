// Work that waits for what a transaction wrote must not look before the commit. So a transaction announces something, and
// whoever listens hears of it once it is committed, or not at all.
import type { Kysely, Transaction } from 'kysely';
import type { Db } from './database.ts';
import type { Tables } from './tables.ts';

/** Where something changed that people may be looking at; null: in no project, or in no environment of it. */
export interface Change {
  accountId: string;
  projectId: string | null;
  environment: string | null;
}

interface Announced {
  event: boolean;
  /** Other processes hear of the event by the commit itself. */
  rung: boolean;
  changes: Map<string, Change>;
}

interface Scope extends Announced {
  root: Db;
  /** Called whether it was committed or not. */
  settled: (() => void)[];
}

interface Listeners {
  event: Set<(rung: boolean) => void>;
  change: Set<(changes: Change[]) => void>;
}

const scopes = new WeakMap<Db, Scope>();
const roots = new WeakMap<Db, Listeners>();

function listenersOf(db: Db): Listeners {
  let listeners = roots.get(db);
  if (!listeners) {
    listeners = { event: new Set(), change: new Set() };
    roots.set(db, listeners);
  }
  return listeners;
}

/** From now on, transactions of this database can announce. */
export function hearTransactions(db: Kysely<Tables>): void {
  const plain = db.transaction.bind(db);
  db.transaction = () => {
    const builder = plain();
    const execute = builder.execute.bind(builder);
    builder.execute = async <T>(work: (tx: Transaction<Tables>) => Promise<T>): Promise<T> => {
      const scope: Scope = { root: db, event: false, rung: false, changes: new Map(), settled: [] };
      try {
        const result = await execute((tx) => {
          scopes.set(tx, scope);
          return work(tx);
        });
        tell(db, scope);
        return result;
      } finally {
        for (const settled of scope.settled) settled();
      }
    };
    return builder;
  };
}

function tell(db: Db, { event, rung, changes }: Announced): void {
  const listeners = listenersOf(db);
  if (event) for (const listener of listeners.event) listener(rung);
  if (changes.size === 0) return;
  const list = [...changes.values()];
  for (const listener of listeners.change) listener(list);
}

/** In a transaction: once it is committed. Outside of one: now. */
export function announce(db: Db, topic: 'event'): void;
export function announce(db: Db, topic: 'change', change: Change): void;
export function announce(db: Db, topic: 'event' | 'change', change?: Change): void {
  const scope = scopes.get(db);
  const announced: Announced = scope ?? { event: false, rung: false, changes: new Map<string, Change>() };
  if (topic === 'event') announced.event = true;
  if (change) announced.changes.set(`${change.accountId} ${change.projectId} ${change.environment}`, change);
  if (!scope) tell(db, announced);
}

/** The database a transaction is one of. */
export const rootOf = (db: Db): Db => scopes.get(db)?.root ?? db;

/**
 * The transaction itself tells other processes of its events, if it is committed; `settled` is called either way. Gives
 * whether this is a transaction.
 */
export function markRung(tx: Db, settled: () => void): boolean {
  const scope = scopes.get(tx);
  if (!scope) return false;
  scope.rung = true;
  scope.settled.push(settled);
  return true;
}

/** Gives back what ends the listening. */
export function onCommit<T extends keyof Listeners>(
  db: Db,
  topic: T,
  listener: Listeners[T] extends Set<infer L> ? L : never,
): () => void {
  const set = listenersOf(db)[topic] as Set<unknown>;
  set.add(listener);
  return () => void set.delete(listener);
}
