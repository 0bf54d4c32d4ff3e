// Work that waits for what a transaction wrote must not look before the commit. So a transaction announces a topic, and
// whoever listens hears of it once it is committed, or not at all.
import type { Kysely, Transaction } from 'kysely';
import type { Db } from './database.ts';
import type { Tables } from './tables.ts';

export type Topic = 'event';

interface Scope {
  root: Db;
  topics: Set<Topic>;
}

const scopes = new WeakMap<Db, Scope>();
const listeners = new WeakMap<Db, Map<Topic, Set<() => void>>>();

/** From now on, transactions of this database can announce. */
export function hearTransactions(db: Kysely<Tables>): void {
  const plain = db.transaction.bind(db);
  db.transaction = () => {
    const builder = plain();
    const execute = builder.execute.bind(builder);
    builder.execute = async <T>(work: (tx: Transaction<Tables>) => Promise<T>): Promise<T> => {
      const topics = new Set<Topic>();
      const result = await execute((tx) => {
        scopes.set(tx, { root: db, topics });
        return work(tx);
      });
      for (const topic of topics) tell(db, topic);
      return result;
    };
    return builder;
  };
}

function tell(db: Db, topic: Topic): void {
  for (const listener of listeners.get(db)?.get(topic) ?? []) listener();
}

/** In a transaction: once it is committed. Outside of one: now. */
export function announce(db: Db, topic: Topic): void {
  const scope = scopes.get(db);
  if (scope) scope.topics.add(topic);
  else tell(db, topic);
}

/** Gives back what ends the listening. */
export function onCommit(db: Db, topic: Topic, listener: () => void): () => void {
  const topics = listeners.get(db) ?? new Map<Topic, Set<() => void>>();
  listeners.set(db, topics);
  const set = topics.get(topic) ?? new Set();
  topics.set(topic, set);
  set.add(listener);
  return () => void set.delete(listener);
}
