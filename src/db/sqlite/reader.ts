// Reads outside of any transaction. Their results are cached until the database changes: the writer reports the commits of
// this process, and SQLite's `data_version` shows those of others.
import type { StatementSync } from 'node:sqlite';
import type { CompiledQuery } from 'kysely';
import { Memo } from '../../lib/memo.ts';
import type { Handle } from './handle.ts';

const maxCached = 2000;

/** For how long cached reads may miss the commit of another process, such as the command line. */
const maxStaleMs = 20;

export class Reader {
  readonly handle: Handle;
  readonly #dataVersion: StatementSync;
  readonly #cached = new Memo<unknown[]>(maxCached);
  #version: unknown = null;
  #checkAt = 0;

  constructor(handle: Handle) {
    this.handle = handle;
    this.#dataVersion = handle.database.prepare('pragma data_version');
  }

  /** The rows are shared with other callers and must not be changed. */
  read<R>(query: CompiledQuery<R>): R[] {
    const now = performance.now();
    if (now >= this.#checkAt) this.#checkVersion(now);
    const key = query.sql + query.parameters.join('\n');
    return this.#cached.get(key, () => this.handle.run<R>(query).rows) as R[];
  }

  /** Called after every commit of this process. */
  expire = (): void => {
    this.#checkAt = 0;
  };

  #checkVersion(now: number): void {
    const { data_version: version } = this.#dataVersion.get() as { data_version: number };
    if (version !== this.#version) this.#cached.clear();
    this.#version = version;
    this.#checkAt = now + maxStaleMs;
  }
}
