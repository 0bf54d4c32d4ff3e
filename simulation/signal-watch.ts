// Whether the signals of a transaction are published after its commit, and after each. A transaction is followed through all
// that it awaits, so that what is written and published in it is known to be its own.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Transaction } from 'kysely';
import type { Db } from '../src/db/database.ts';
import type { Tables } from '../src/db/tables.ts';
import { hubOf, type Topic } from '../src/signals/signals.ts';

interface Followed {
  isCommitted: boolean;
  written: Set<string>;
  published: Set<Topic>;
}

const followed = new AsyncLocalStorage<Followed>();

/** What a process has to say of a change of these tables. */
const topics: Partial<Record<string, Topic>> = { event: 'events', routing: 'routing' };

export function noteWritten(table: string): void {
  followed.getStore()?.written.add(table);
}

export function watchSignals(db: Db, onSignal: (message: string | null) => void): void {
  const begin = db.transaction.bind(db);
  db.transaction = () => {
    const builder = begin();
    const execute = builder.execute.bind(builder);
    builder.execute = <T>(work: (tx: Transaction<Tables>) => Promise<T>): Promise<T> => {
      const own: Followed = { isCommitted: false, written: new Set(), published: new Set() };
      return followed.run(own, async () => {
        const result = await execute(async (tx) => {
          const done = await work(tx);
          own.isCommitted = true;
          return done;
        });
        for (const table of own.written) {
          const topic = topics[table];
          if (topic && !own.published.has(topic)) onSignal(`${table} was written, and no signal ${topic} published`);
        }
        return result;
      });
    };
    return builder;
  };
  // Any subscriber stands for all of them.
  for (const topic of new Set(Object.values(topics) as Topic[])) {
    const { listeners } = hubOf(db);
    const own = listeners.get(topic) ?? new Set();
    listeners.set(
      topic,
      own.add(() => {
        const transaction = followed.getStore();
        if (!transaction) return;
        transaction.published.add(topic);
        onSignal(transaction.isCommitted ? null : `a signal ${topic} was published before the commit`);
      }),
    );
  }
}
