import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import type { CompiledQuery, QueryResult } from 'kysely';

const maxStatements = 500;

interface Statement {
  statement: StatementSync;
  givesRows: boolean;
}

/** An open database file with its prepared statements. */
export class Handle {
  readonly database: DatabaseSync;
  readonly #statements = new Map<string, Statement>();

  constructor(path: string, readOnly: boolean) {
    this.database = new DatabaseSync(path, { readOnly, timeout: 5000 });
    if (!readOnly) this.database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on');
    this.database.exec('pragma cache_size = -16384; pragma temp_store = memory');
  }

  run<R>({ sql, parameters }: CompiledQuery): QueryResult<R> {
    const { statement, givesRows } = this.#statement(sql);
    const values = parameters as SQLInputValue[];
    if (givesRows) return { rows: statement.all(...values) as R[] };
    const { changes, lastInsertRowid } = statement.run(...values);
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
  }

  control(sql: 'begin immediate' | 'savepoint one' | 'release one' | 'commit'): void {
    this.#statement(sql).statement.run();
  }

  #statement(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known) return known;
    if (this.#statements.size >= maxStatements) this.#statements.clear();
    const statement = this.database.prepare(sql);
    const fresh = { statement, givesRows: statement.columns().length > 0 };
    this.#statements.set(sql, fresh);
    return fresh;
  }
}
