// The one writer of a SQLite database, with group commit.
//
// A commit on SQLite is an fsync, which dominates the cost of a write. So transactions that run in the same turn of the
// event loop share one: each runs alone, inside a savepoint of an open outer transaction, and all of them are acknowledged
// together after the one COMMIT that makes them durable. A transaction that fails rolls back only its own savepoint. A
// COMMIT that fails is the end of every transaction in its group, and of nothing else.

import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import type { CompiledQuery, QueryResult } from 'kysely';
import { Memo } from '../lib/bounded-cache.ts';
import { keepDatabasePrivate } from '../lib/private-files.ts';
import { isLocked } from './database-errors.ts';

/** A transaction under way. Only its owner can end it, once: after that, ending it again changes nothing. */
export interface Savepoint {
  readonly name: string;
  isOpen: boolean;
}

interface Unsettled {
  resolve: () => void;
  reject: (error: unknown) => void;
}

/** Only one savepoint is open at a time. Different names make a mix-up an error of SQLite instead of lost data. */
const nameCount = 16;

/** How long transactions wait for another process that holds the lock of the file, all of them together. */
const lockedLimitMs = 5000;
const retryLockMs = 10;

export class Writer {
  handle: Handle;
  readonly #reopen: () => Handle;
  readonly #onCommit: () => void;
  #begun = 0;
  #locked = false;
  readonly #queue: (() => void)[] = [];
  #unsettled: Unsettled[] = [];
  #flush: Promise<void> | null = null;
  /** Since when another process holds the lock of the file, as far as anything here tried to get it. */
  #foreignLock: { since: number; seen: number } | null = null;

  constructor(open: () => Handle, onCommit: () => void) {
    this.#reopen = open;
    this.handle = open();
    this.#onCommit = onCommit;
  }

  async begin(): Promise<Savepoint> {
    await this.#lock();
    const name = `s${this.#begun++ % nameCount}`;
    try {
      this.#ensureOpen();
      if (!this.handle.database.isTransaction && !this.#tryBegin()) await this.#beginWhenUnlocked();
      this.handle.control(`savepoint ${name}`);
      return { name, isOpen: true };
    } catch (error) {
      this.#unlock();
      throw error;
    }
  }

  /** Whether the file was not locked by another process. After the limit that is an error. */
  #tryBegin(): boolean {
    try {
      this.handle.control('begin immediate');
      this.#foreignLock = null;
      return true;
    } catch (error) {
      if (!isLocked(error)) throw error;
      const now = performance.now();
      const known = this.#foreignLock;
      const since = known && now - known.seen < lockedLimitMs ? known.since : now;
      this.#foreignLock = { since, seen: now };
      if (now - since > lockedLimitMs) throw error;
      return false;
    }
  }

  async #beginWhenUnlocked(): Promise<void> {
    do await new Promise((resolve) => setTimeout(resolve, retryLockMs));
    while (!this.#tryBegin());
  }

  /** After SQLite has rolled back by itself, a statement would be committed at once, outside of any transaction. */
  runInTransaction<R>(query: CompiledQuery): QueryResult<R> {
    if (!this.handle.database.isTransaction) throw new Error('the transaction was rolled back by SQLite');
    return this.handle.run(query);
  }

  /** Resolves when what was written since begin() is on disk. */
  commit(savepoint: Savepoint): Promise<void> {
    try {
      this.handle.control(`release ${savepoint.name}`);
    } catch (error) {
      this.rollback(savepoint);
      return Promise.reject(error);
    }
    savepoint.isOpen = false;
    const settled = new Promise<void>((resolve, reject) => this.#unsettled.push({ resolve, reject }));
    this.#unlock();
    this.#planFlush();
    return settled;
  }

  /** Does nothing where the transaction has ended, for example because the COMMIT of its group failed. */
  rollback(savepoint: Savepoint): void {
    if (!savepoint.isOpen) return;
    savepoint.isOpen = false;
    try {
      if (!this.handle.database.isTransaction) throw new Error('the transaction was rolled back by SQLite');
      this.handle.control(`rollback to ${savepoint.name}`);
      this.handle.control(`release ${savepoint.name}`);
    } catch (error) {
      // A full disk or an I/O error ends the outer transaction, and with it all the others in the group.
      this.#abandonGroup(error);
    }
    this.#unlock();
    this.#planFlush();
  }

  /** Waits for pending commits. No transaction may begin afterwards. */
  async close(): Promise<void> {
    while (this.#flush) await this.#flush;
    this.handle.close();
  }

  #planFlush(): void {
    this.#flush ??= new Promise((resolve) => setImmediate(resolve)).then(() => this.#commitGroup());
  }

  async #commitGroup(): Promise<void> {
    await this.#lock();
    this.#flush = null;
    try {
      if (this.handle.database.isTransaction) this.handle.control('commit');
    } catch (error) {
      this.#abandonGroup(error);
      return this.#unlock();
    }
    this.#settle(null); // it has happened, whatever else fails
    this.#unlock();
    this.#onCommit();
  }

  /**
   * What the group wrote is undone. A connection that cannot even do that is replaced by a new one: by the next transaction,
   * if the file cannot be opened now.
   */
  #abandonGroup(error: unknown): void {
    try {
      if (this.handle.database.isTransaction) this.handle.database.exec('rollback');
    } catch {
      this.handle.close();
    }
    this.#settle(error);
  }

  #ensureOpen(): void {
    if (!this.handle.database.isOpen) this.handle = this.#reopen();
  }

  #settle(error: unknown): void {
    const settled = this.#unsettled;
    this.#unsettled = [];
    for (const { resolve, reject } of settled) error === null ? resolve() : reject(error);
  }

  #lock(): Promise<void> | void {
    if (this.#locked) return new Promise((resolve) => this.#queue.push(resolve));
    this.#locked = true;
  }

  #unlock(): void {
    const next = this.#queue.shift();
    if (next) next();
    else this.#locked = false;
  }
}

const maxStatements = 500;

interface Statement {
  statement: StatementSync;
  givesRows: boolean;
}

/** An open database file with its prepared statements. */
export class Handle {
  readonly database: DatabaseSync;
  readonly #statements = new Memo<Statement>(maxStatements);

  constructor(path: string, readOnly: boolean) {
    if (!readOnly && path !== ':memory:') keepDatabasePrivate(path);
    this.database = new DatabaseSync(path, { readOnly, timeout: 5000 });
    // Only a new file takes this: from an older one, room that has become free goes back with its next restore.
    if (!readOnly) this.database.exec('pragma auto_vacuum = incremental');
    if (!readOnly) this.database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on');
    // The writer waits for the lock of another process itself, without holding up everything else in this one.
    if (!readOnly) this.database.exec('pragma busy_timeout = 0');
    this.database.exec('pragma cache_size = -16384; pragma temp_store = memory');
  }

  run<R>({ sql, parameters }: CompiledQuery): QueryResult<R> {
    const { statement, givesRows } = this.#statement(sql);
    const values = parameters as SQLInputValue[];
    if (givesRows) return { rows: statement.all(...values) as R[] };
    const { changes, lastInsertRowid } = statement.run(...values);
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
  }

  control(sql: 'begin immediate' | 'commit' | `${'savepoint' | 'release' | 'rollback to'} ${string}`): void {
    this.#statement(sql).statement.run();
  }

  /** Gives how many went back to the disk. */
  releasePages(count: number): number {
    const free = () => Number(this.database.prepare('pragma freelist_count').get()!.freelist_count);
    const before = free();
    this.database.exec(`pragma incremental_vacuum(${count})`);
    return before - free();
  }

  /** Also where it is in the middle of something. */
  close(): void {
    try {
      this.database.close();
    } catch {
      // Nothing more can be done with it.
    }
  }

  #statement(sql: string): Statement {
    return this.#statements.get(sql, () => {
      const statement = this.database.prepare(sql);
      return { statement, givesRows: statement.columns().length > 0 };
    });
  }
}
