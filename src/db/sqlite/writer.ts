// The one writer, with group commit.
//
// A commit on SQLite is an fsync, which dominates the cost of a write. So transactions that run in the same turn of the
// event loop share one: each runs alone, inside a savepoint of an open outer transaction, and all of them are acknowledged
// together after the one COMMIT that makes them durable. A transaction that fails rolls back only its own savepoint.
import type { Handle } from './handle.ts';

interface Unsettled {
  resolve: () => void;
  reject: (error: unknown) => void;
}

export class Writer {
  readonly handle: Handle;
  #locked = false;
  readonly #queue: (() => void)[] = [];
  #unsettled: Unsettled[] = [];
  #flush: Promise<void> | null = null;

  readonly #onCommit: () => void;

  constructor(handle: Handle, onCommit: () => void) {
    this.handle = handle;
    this.#onCommit = onCommit;
  }

  async begin(): Promise<void> {
    await this.#lock();
    try {
      if (!this.handle.database.isTransaction) this.handle.control('begin immediate');
      this.handle.control('savepoint one');
    } catch (error) {
      this.#unlock();
      throw error;
    }
  }

  /** Resolves when what was written since begin() is on disk. */
  commit(): Promise<void> {
    this.handle.control('release one');
    const settled = new Promise<void>((resolve, reject) => this.#unsettled.push({ resolve, reject }));
    this.#unlock();
    this.#planFlush();
    return settled;
  }

  rollback(): void {
    if (this.handle.database.isTransaction) this.handle.database.exec('rollback to one; release one');
    // A full disk or an I/O error makes SQLite roll back the outer transaction, and with it all the others in the group.
    else this.#settle(new Error('the transaction was rolled back by SQLite'));
    this.#unlock();
    this.#planFlush();
  }

  /** Waits for pending commits. No transaction may begin afterwards. */
  async close(): Promise<void> {
    while (this.#flush) await this.#flush;
    this.handle.database.close();
  }

  #planFlush(): void {
    this.#flush ??= new Promise((resolve) => setImmediate(resolve)).then(() => this.#commitGroup());
  }

  async #commitGroup(): Promise<void> {
    await this.#lock();
    this.#flush = null;
    try {
      if (this.handle.database.isTransaction) this.handle.control('commit');
      this.#onCommit();
      this.#settle(null);
    } catch (error) {
      if (this.handle.database.isTransaction) this.handle.database.exec('rollback');
      this.#settle(error);
    } finally {
      this.#unlock();
    }
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
