// Signals between processes that share a PostgreSQL database, by NOTIFY.
import type { Db } from '../db/database.ts';
import { type NotifyChannel, openNotifyChannel } from '../db/postgres-notify-channel.ts';
import { scopeOf, type TransactionScope } from '../db/transactions.ts';
import type { Log } from '../lib/log.ts';
import type { Loops } from '../lib/loops.ts';
import { type Batch, type Hub, hubOf, type Topic, type Topics } from './signals.ts';

const channelName = 'sluice_signals';
/** PostgreSQL takes fewer than 8,000 bytes. */
const maxPayloadBytes = 7000;

interface ProcessParts {
  db: Db;
  databaseUrl: string;
  /** Unique among the processes that share the database. */
  processId: string;
  log: Log;
  loops: Loops;
}

interface Payload {
  from: string;
  signals: [Topic, Topics[Topic]][];
}

const exchanges = new WeakMap<Db, SignalExchange>();

/** From now on signals go to the other processes and come from them, until it is stopped. */
export function connectProcesses(parts: ProcessParts): { stop(): Promise<void> } {
  const { db } = parts;
  const hub = hubOf(db);
  const exchange = new SignalExchange(hub, parts);
  exchanges.set(db, exchange);
  hub.forward = (batch, scope) => exchange.forward(batch, scope);
  return {
    async stop() {
      hub.forward = null;
      exchanges.delete(db);
      await exchange.stop();
    },
  };
}

/**
 * What a statement of this transaction may pass to pg_notify, so that its commit notifies the other processes of its
 * events and saves a statement of its own. Transactions that notify wait for each other's commits, so only one at a
 * time of each process gets this. null: the others are notified after the commit.
 */
export function takeNotification(tx: Db): { channel: string; payload: string } | null {
  const scope = scopeOf(tx);
  return (scope && exchanges.get(scope.root)?.takeNotification(scope)) ?? null;
}

class SignalExchange {
  readonly #channel: NotifyChannel;
  readonly #processId: string;
  readonly #log: Log;
  #waiting: Batch = new Map();
  #sending = false;
  /** The transaction whose commit notifies of its events. */
  #notifying: TransactionScope | null = null;

  constructor(hub: Hub, { databaseUrl, processId, log, loops }: Omit<ProcessParts, 'db'>) {
    this.#processId = processId;
    this.#log = log;
    const onPayload = (text: string | null) => {
      if (text === null) {
        for (const listeners of hub.listeners.values()) for (const listener of listeners) listener([]);
        return;
      }
      const { from, signals } = JSON.parse(text) as Payload;
      if (from === processId) return;
      for (const [topic, own] of Map.groupBy(signals, ([topic]) => topic)) {
        for (const listener of hub.listeners.get(topic) ?? []) listener(own.map(([, signal]) => signal));
      }
    };
    this.#channel = openNotifyChannel({ databaseUrl, channel: channelName, loops, log, onPayload });
  }

  takeNotification(scope: TransactionScope): { channel: string; payload: string } | null {
    if (this.#notifying) return null;
    this.#notifying = scope;
    scope.onEnd.push(() => {
      this.#notifying = null;
    });
    return { channel: channelName, payload: this.#encode([['events', null]]) };
  }

  /** The first batch goes out at once; those that come while it does go out together. */
  forward(batch: Batch, scope: TransactionScope | undefined): void {
    for (const [topic, signals] of batch) {
      if (topic === 'events' && scope !== undefined && scope === this.#notifying) continue;
      const waiting = this.#waiting.get(topic);
      if (waiting) for (const [text, signal] of signals) waiting.set(text, signal);
      else this.#waiting.set(topic, signals);
    }
    if (!this.#sending) void this.#sendWaiting();
  }

  stop(): Promise<void> {
    return this.#channel.stop();
  }

  async #sendWaiting(): Promise<void> {
    this.#sending = true;
    while (this.#waiting.size > 0) {
      const payloads = this.#payloadsOf(this.#waiting);
      this.#waiting = new Map();
      await this.#channel
        .send(payloads)
        .catch((error) => this.#log.debug({ err: error }, 'other processes were not notified'));
    }
    this.#sending = false;
  }

  #payloadsOf(batch: Batch): string[] {
    const payloads: Payload['signals'][] = [[]];
    let bytes = 0;
    for (const [topic, signals] of batch) {
      for (const [text, signal] of signals) {
        const size = Buffer.byteLength(text) + topic.length + 6;
        if (bytes + size > maxPayloadBytes) {
          payloads.push([]);
          bytes = 0;
        }
        payloads.at(-1)!.push([topic, signal]);
        bytes += size;
      }
    }
    return payloads.map((signals) => this.#encode(signals));
  }

  #encode(signals: Payload['signals']): string {
    return JSON.stringify({ from: this.#processId, signals } satisfies Payload);
  }
}
