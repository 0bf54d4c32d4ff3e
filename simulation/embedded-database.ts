// The database of an installation with one process: the shipped SQLite driver, on a file. Its statements answer at once;
// what goes wrong is the COMMIT that ends a group of transactions: the disk is full, or the process crashes before it or
// right after it.
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { Kysely } from 'kysely';
import type { Db } from '../src/db/database.ts';
import { readDirectly } from '../src/db/prepared.ts';
import { sqliteDialect } from '../src/db/sqlite-driver.ts';
import { Handle } from '../src/db/sqlite-writer.ts';
import type { Tables } from '../src/db/tables.ts';
import { trackTransactions } from '../src/db/transactions.ts';
import { type CommitListener, type SimulatedDatabase, writtenTable } from './database.ts';
import type { Faults } from './faults.ts';
import { watchSignals } from './signal-watch.ts';
import type { Machine, World } from './world.ts';

export class EmbeddedDatabase implements SimulatedDatabase {
  readonly reader: Handle;
  onCommit: CommitListener = () => {};
  isDiskFull = false;
  onSignal: (message: string | null) => void = () => {};
  onLeaseLost: () => void = () => {};
  readonly #faults: Faults;
  readonly #path: string;
  readonly #opened = new Set<DatabaseSync>();
  readonly #restore: () => void;

  constructor(world: World, faults: Faults, path: string) {
    this.#faults = faults;
    this.#path = path;
    this.reader = new Handle(path, false);
    this.#restore = onConnections(world, (database, machine) => this.#watch(database, machine));
  }

  connect(): Db {
    const dialect = sqliteDialect(this.#path);
    const db = new Kysely<Tables>({ dialect });
    readDirectly(db, dialect.read);
    trackTransactions(db);
    watchSignals(db, (message) => this.onSignal(message));
    return db;
  }

  close(): void {
    this.#restore();
    for (const database of this.#opened) if (database.isOpen) database.close();
    this.reader.close();
  }

  /** Wraps the statements of a connection that a process has opened. */
  #watch(database: DatabaseSync, machine: Machine): void {
    this.#opened.add(database);
    machine.onCrash.push(() => {
      if (this.#opened.delete(database) && database.isOpen) database.close();
    });
    const prepare = database.prepare.bind(database);
    let written = new Set<string>();
    database.prepare = (sql) => {
      const statement = prepare(sql);
      if (sql === 'commit') {
        return standIn(statement, () => {
          this.#commit(machine, statement, written);
          written = new Set();
        });
      }
      const table = writtenTable(sql);
      return table === undefined ? statement : standIn(statement, () => written.add(table));
    };
  }

  #commit(machine: Machine, statement: StatementSync, written: ReadonlySet<string>): void {
    if (this.isDiskFull) throw Object.assign(new Error('database or disk is full'), { errcode: 13 });
    const fault = this.#faults.ofCall('commit');
    if (fault === 'crash_before') throw crashed(machine);
    statement.run();
    this.onCommit(machine, written, null);
    if (fault === 'crash_after') throw crashed(machine);
  }
}

function crashed(machine: Machine): Error {
  machine.crash();
  return new Error('the process is dead');
}

/** Does something first; the statement itself is left to it where it is a COMMIT. */
function standIn(statement: StatementSync, before: () => void): StatementSync {
  const isCommit = statement.sourceSQL === 'commit';
  return {
    columns: () => statement.columns(),
    all(...values: never[]) {
      before();
      return statement.all(...values);
    },
    run(...values: never[]) {
      before();
      return isCommit ? { changes: 0, lastInsertRowid: 0 } : statement.run(...values);
    },
  } as unknown as StatementSync;
}

/** Calls `onOpen` for every connection that a process opens: the first thing the driver does with it are its pragmas. */
function onConnections(world: World, onOpen: (database: DatabaseSync, machine: Machine) => void): () => void {
  const known = new WeakSet<DatabaseSync>();
  const { exec } = DatabaseSync.prototype;
  DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
    const machine = world.current;
    if (machine?.isDead) {
      this.close();
      throw new Error('the process is dead');
    }
    if (machine && !known.has(this)) {
      known.add(this);
      onOpen(this, machine);
    }
    // A crash here is one of the process, not of the machine below it.
    exec.call(this, sql.replace('synchronous = full', 'synchronous = off'));
  };
  return () => {
    DatabaseSync.prototype.exec = exec;
  };
}
