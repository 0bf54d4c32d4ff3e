import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import type { CompiledQuery, QueryResult } from 'kysely';
import { Memo } from '../../lib/memo.ts';
import { keepDatabasePrivate } from '../../lib/private-file.ts';

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
