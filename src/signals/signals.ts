// Signals say that something happened, so that nobody has to poll for it. A signal published within a transaction is
// delivered after its commit, or never: to the subscribers in this process at once, to those in other processes by
// NOTIFY. A signal carries no state and can get lost between processes: every subscriber also polls from time to
// time.
import type { Db } from '../db/database.ts';
import { runAll, scopeOf, type TransactionScope } from '../db/transactions.ts';

export interface Topics {
  /** An event was written: followers of the stream read on, its deliveries are due. */
  events: null;
  /** Deliveries are due. */
  deliveries: null;
  /** Something changed that people may have on screen; null: in no project, or in no single environment. */
  changes: { accountId: string; projectId: string | null; environment: string | null };
  /** What should run in this environment may have changed. */
  environments: { projectId: string; environment: string };
  /** Which instances get which requests may have changed. */
  routing: null;
  /** Routers have another version of the table in force, or have ended. */
  routers: null;
  /** A domain came, went, or has another certificate, or asks for one. */
  domains: { hostname: string };
  /** A token was revoked. */
  tokens: { tokenId: string };
  /** Lines of this environment were stored. */
  logs: { projectId: string; environment: string };
  /** Something was deleted that leaves things behind to clean up. */
  removals: null;
}

export type Topic = keyof Topics;

/** Gets the signals of one commit together. An empty list: some of another process may be lost, check everything. */
type Listener<T extends Topic> = (signals: Topics[T][]) => void;

/** Signals by topic, each once: the key is its JSON. */
export type Batch = Map<Topic, Map<string, Topics[Topic]>>;

/** Everything that is subscribed to one database in this process. */
export interface Hub {
  listeners: Map<Topic, Set<Listener<Topic>>>;
  /** Takes what was committed here to the other processes. `scope`: the transaction it was committed in. */
  forward: ((batch: Batch, scope: TransactionScope | undefined) => void) | null;
}

const hubs = new WeakMap<Db, Hub>();

export function hubOf(root: Db): Hub {
  let hub = hubs.get(root);
  if (!hub) {
    hub = { listeners: new Map(), forward: null };
    hubs.set(root, hub);
  }
  return hub;
}

/** In a transaction: delivered once it is committed. Outside of one: delivered now. */
export function publish<T extends Topic>(db: Db, topic: T, signal: Topics[T]): void {
  const scope = scopeOf(db);
  const batch: Batch = scope ? batchOf(scope) : new Map();
  const text = JSON.stringify(signal);
  const known = batch.get(topic);
  if (known) known.set(text, signal);
  else batch.set(topic, new Map([[text, signal]]));
  if (!scope) deliver(hubOf(db), batch);
}

function batchOf(scope: TransactionScope): Batch {
  if (scope.signals) return scope.signals as Batch;
  const batch: Batch = new Map();
  scope.signals = batch;
  scope.onCommit.push(() => deliver(hubOf(scope.root), batch, scope));
  return batch;
}

/** Gives back what ends the subscription. */
export function subscribe<T extends Topic>(db: Db, topic: T, listener: Listener<T>): () => void {
  const { listeners } = hubOf(db);
  const entry = listener as Listener<Topic>;
  const own = listeners.get(topic) ?? new Set();
  listeners.set(topic, own.add(entry));
  return () => void own.delete(entry);
}

function deliver(hub: Hub, batch: Batch, scope?: TransactionScope): void {
  const notices: (() => void)[] = [];
  for (const [topic, signals] of batch) {
    const list = [...signals.values()];
    for (const listener of hub.listeners.get(topic) ?? []) notices.push(() => listener(list));
  }
  runAll([...notices, () => hub.forward?.(batch, scope)]);
}
