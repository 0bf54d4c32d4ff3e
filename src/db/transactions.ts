// Effects of a transaction outside of the database must wait for its commit. The scope of a transaction collects them.
import type { CompiledQuery, Transaction } from 'kysely';
import type { Db } from './database.ts';
import type { Tables } from './tables.ts';

export type RunDirectly = <R>(query: CompiledQuery<R>) => R[];

export interface TransactionScope {
  /** The database the transaction belongs to. */
  root: Db;
  /** Runs a query in the transaction without Kysely. Null on PostgreSQL, and after the end of the transaction. */
  runDirectly: RunDirectly | null;
  /** What signals.ts delivers after the commit. */
  signals: object | null;
  /** Called after the commit, and only then. */
  onCommit: (() => void)[];
  /** Called after the commit or the rollback. */
  onEnd: (() => void)[];
}

const scopes = new WeakMap<Db, TransactionScope>();

/** The scope of a transaction; undefined outside of one. */
export const scopeOf = (db: Db): TransactionScope | undefined => scopes.get(db);

/** Gives every transaction of this database a scope. */
export function trackTransactions(db: Db, runDirectly: RunDirectly | null = null): void {
  const begin = db.transaction.bind(db);
  db.transaction = () => {
    const builder = begin();
    const execute = builder.execute.bind(builder);
    builder.execute = async <T>(work: (tx: Transaction<Tables>) => Promise<T>): Promise<T> => {
      const scope: TransactionScope = { root: db, runDirectly, signals: null, onCommit: [], onEnd: [] };
      try {
        const result = await execute((tx) => {
          scopes.set(tx, scope);
          return work(tx);
        });
        runAll(scope.onCommit);
        return result;
      } finally {
        scope.runDirectly = null;
        runAll(scope.onEnd);
      }
    };
    return builder;
  };
}

/** A commit that happened is reported as one, also where what follows it fails. Each runs, whatever the others do. */
export function runAll(callbacks: (() => void)[]): void {
  for (const run of callbacks) {
    try {
      run();
    } catch (error) {
      process.emitWarning(error as Error);
    }
  }
}
