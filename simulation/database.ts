// One database that all simulated processes share, in place of PostgreSQL: SQLite with one transaction at a time. What is
// read outside of a transaction is what was committed. A connection can be lost, a disk can be full, and a transaction
// whose process is silent for too long is ended, as a server does.
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { Db } from '../src/db/database.ts';
import { Handle } from '../src/db/sqlite-writer.ts';
import type { Tables } from '../src/db/tables.ts';
import { trackTransactions } from '../src/db/transactions.ts';
import type { OfEnvironment } from './facts.ts';
import type { Outside } from './outside.ts';
import { noteWritten, watchSignals } from './signal-watch.ts';
import type { Entry, Machine, World } from './world.ts';

/** A transaction, or one statement that is its own. */
interface Turn {
  machine: Machine;
  isOver: boolean;
  lastUsedAt: number;
  /** The tables it wrote to. */
  written: Set<string>;
  /** The environment for which it asked whether its process still has the lease. */
  leased: OfEnvironment | null;
  /** Ends it if its process is silent for too long. */
  limit: Entry | null;
}

interface Waiting {
  turn: Turn;
  begin: () => void;
}

const statementMs = [0.05, 1.5] as const;
const givesUpAfterMs = 2000;
const idleLimitMs = 8000;
const waitLimitMs = 15_000;

export type CommitListener = (machine: Machine, written: ReadonlySet<string>, leased: OfEnvironment | null) => void;

export interface SimulatedDatabase {
  /** Sees what is committed. */
  readonly reader: Handle;
  /** Called after each commit with the process that made it, the tables it wrote to, and the lease it was made under. */
  onCommit: CommitListener;
  isDiskFull: boolean;
  /** Called when signals of a transaction were published; the message says what is wrong with that. */
  onSignal: (message: string | null) => void;
  /** A process found that another has its lease by now. */
  onLeaseLost: () => void;
  connect(machine: Machine): Db;
  close(): void;
}

export class SharedDatabase implements SimulatedDatabase {
  readonly reader: Handle;
  onCommit: CommitListener = () => {};
  isDiskFull = false;
  onSignal: (message: string | null) => void = () => {};
  onLeaseLost: () => void = () => {};
  readonly #world: World;
  readonly #outside: Outside;
  readonly #writer: Handle;
  #turn: Turn | null = null;
  readonly #queue: Waiting[] = [];

  constructor(world: World, outside: Outside, path: string) {
    this.#world = world;
    this.#outside = outside;
    this.#writer = new Handle(path, false);
    this.#writer.database.exec('pragma synchronous = off');
    this.reader = new Handle(path, true);
    let fence = 0;
    for (const { database } of [this.#writer, this.reader]) {
      database.function('shared_now', () => Math.floor(world.now));
      database.function('next_fence', () => ++fence);
    }
  }

  close(): void {
    this.#writer.close();
    this.reader.close();
  }

  connect(machine: Machine): Db {
    machine.onCrash.push(() => this.#forget(machine));
    const db = new Kysely<Tables>({ dialect: turnsDialect(this, machine) });
    trackTransactions(db);
    watchSignals(db, (message) => this.onSignal(message));
    return db;
  }

  read<R>(machine: Machine, query: CompiledQuery): Promise<QueryResult<R>> {
    return this.#call(machine, 'statement', labelOf(query), () => this.reader.run<R>(inSqlite(query)));
  }

  write<R>(turn: Turn, query: CompiledQuery): Promise<QueryResult<R>> {
    // Here, where the transaction that it belongs to is known; what is deleted is told to nobody.
    const changed = /^\s*delete/i.test(query.sql) ? undefined : writtenTable(query.sql);
    if (changed !== undefined) noteWritten(changed);
    const run = () => {
      this.#use(turn);
      const table = writtenTable(query.sql);
      if (table !== undefined) turn.written.add(table);
      turn.leased ??= leaseNamedIn(query);
      const result = this.#writer.run<R>(inSqlite(query));
      if (isConfirmation(query) && result.numAffectedRows === 0n) this.onLeaseLost();
      return result;
    };
    return this.#call(turn.machine, 'statement', labelOf(query), run, () => this.#end(turn));
  }

  async beforeStatement(machine: Machine, query: CompiledQuery): Promise<void> {
    if (isConfirmation(query)) await this.#outside.beforeConfirmation(machine);
  }

  /** Waits for its turn. */
  begin(machine: Machine): Promise<Turn> {
    const turn: Turn = {
      machine,
      isOver: false,
      lastUsedAt: this.#world.now,
      written: new Set(),
      leased: null,
      limit: null,
    };
    return new Promise((resolve, reject) => {
      const world = this.#world;
      let patience: Entry | null = null;
      const begin = () => {
        if (patience) patience.canceled = true;
        this.#turn = turn;
        turn.lastUsedAt = world.now;
        this.#writer.control('begin immediate');
        this.#watch(turn);
        world.after(machine, world.random.between(...statementMs), 'begin', () => resolve(turn));
      };
      if (!this.#turn) return begin();
      const waiting = { turn, begin };
      this.#queue.push(waiting);
      patience = world.after(machine, waitLimitMs, 'waited too long', () => {
        const at = this.#queue.indexOf(waiting);
        if (at === -1) return;
        this.#queue.splice(at, 1);
        reject(new ConnectionLost());
      });
    });
  }

  commit(turn: Turn): Promise<void> {
    const commit = () => {
      this.#use(turn);
      if (this.isDiskFull) {
        this.#end(turn);
        throw Object.assign(new Error('database or disk is full'), { errcode: 13 });
      }
      this.#writer.control('commit');
      close(turn);
      this.onCommit(turn.machine, turn.written, turn.leased);
      this.#next();
    };
    return this.#call(turn.machine, 'commit', 'commit', commit, () => this.#end(turn));
  }

  rollback(turn: Turn): void {
    this.#end(turn);
  }

  #call<T>(
    machine: Machine,
    kind: 'statement' | 'commit',
    label: string,
    effect: () => T,
    onLost: () => void = () => {},
  ): Promise<T> {
    const lost = () => new ConnectionLost();
    return this.#outside.call(machine, { kind, label, effect, takesMs: statementMs, lost, givesUpAfterMs, onLost });
  }

  #use(turn: Turn): void {
    if (turn.isOver) throw new ConnectionLost();
    turn.lastUsedAt = this.#world.now;
  }

  #watch(turn: Turn): void {
    turn.limit = this.#world.after(null, idleLimitMs, 'idle transaction?', () => {
      if (this.#world.now - turn.lastUsedAt >= idleLimitMs - 1) this.#end(turn);
      else this.#watch(turn);
    });
  }

  #end(turn: Turn): void {
    if (turn.isOver) return;
    close(turn);
    this.#writer.database.exec('rollback');
    this.#next();
  }

  #next(): void {
    this.#turn = null;
    let waiting = this.#queue.shift();
    while (waiting?.turn.machine.isDead) waiting = this.#queue.shift();
    waiting?.begin();
  }

  #forget(machine: Machine): void {
    if (this.#turn?.machine === machine) this.#end(this.#turn);
  }
}

/** As `pg` says it. */
export class ConnectionLost extends Error {
  constructor() {
    super('Connection terminated unexpectedly');
  }
}

function close(turn: Turn): void {
  turn.isOver = true;
  if (turn.limit) turn.limit.canceled = true;
}

const isConfirmation = ({ sql }: CompiledQuery): boolean => sql.startsWith('update "environment_lease"');

const labelOf = ({ sql }: CompiledQuery): string => sql.slice(0, 60).replaceAll(/\s+/g, ' ');

/** What several processes ask PostgreSQL for: its clock, its sequence of fences, its row locks. */
function inSqlite(query: CompiledQuery): CompiledQuery {
  if (!query.sql.includes('environment_lease') && !query.sql.includes('clock_timestamp()')) return query;
  const sql = query.sql
    .replaceAll(/\(extract\(epoch from clock_timestamp\(\)\) \* 1000\)(::bigint)?/g, 'shared_now()')
    .replace(/ for share$/, '')
    .replace(
      /^(insert into "environment_lease" \(.*?)\) values (.*?)\) on conflict/,
      '$1, "fence") values $2, next_fence()) on conflict',
    );
  return { ...query, sql };
}

function leaseNamedIn({ sql, parameters }: CompiledQuery): OfEnvironment | null {
  if (!sql.startsWith('select "fence" from "environment_lease"')) return null;
  const [project_id, environment] = parameters as string[];
  return { project_id: project_id!, environment: environment! };
}

/** The table that a statement writes to; undefined: none. */
export const writtenTable = (sql: string): string | undefined =>
  /^\s*(?:insert into|update|delete from)\s+"?(\w+)/i.exec(sql)?.[1];

/** `T`: a turn, which is a transaction, or one statement that is its own. */
interface Turns<T> {
  read<R>(machine: Machine, query: CompiledQuery): Promise<QueryResult<R>>;
  /** Called for a statement that is a transaction of its own, before its turn. */
  beforeStatement?(machine: Machine, query: CompiledQuery): Promise<void>;
  begin(machine: Machine): Promise<T>;
  write<R>(turn: T, query: CompiledQuery): Promise<QueryResult<R>>;
  commit(turn: T): Promise<void>;
  rollback(turn: T): void;
}

/** How Kysely talks to a database on which transactions take turns. */
const turnsDialect = <T>(database: Turns<T>, machine: Machine): Dialect => ({
  createAdapter: () => new ManyConnections(),
  createDriver: () => new TurnDriver(database, machine),
  createIntrospector: (of) => new SqliteIntrospector(of),
  createQueryCompiler: () => new SqliteQueryCompiler(),
});

const isRead = ({ sql }: CompiledQuery): boolean => /^\s*(select|with)\b/i.test(sql);

class TurnConnection<T> implements DatabaseConnection {
  readonly #database: Turns<T>;
  readonly #machine: Machine;
  turn: T | null = null;

  constructor(database: Turns<T>, machine: Machine) {
    this.#database = database;
    this.#machine = machine;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (this.turn) return this.#database.write(this.turn, query);
    if (isRead(query)) return this.#database.read(this.#machine, query);
    await this.#database.beforeStatement?.(this.#machine, query);
    const turn = await this.#database.begin(this.#machine);
    let result: QueryResult<R>;
    try {
      result = await this.#database.write(turn, query);
    } catch (error) {
      this.#database.rollback(turn);
      throw error;
    }
    await this.#database.commit(turn);
    return result;
  }

  // biome-ignore lint/correctness/useYield: the interface requires a generator; nothing here streams
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('streaming is not supported');
  }
}

class TurnDriver<T> implements Driver {
  readonly #database: Turns<T>;
  readonly #machine: Machine;

  constructor(database: Turns<T>, machine: Machine) {
    this.#database = database;
    this.#machine = machine;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<TurnConnection<T>> {
    return new TurnConnection<T>(this.#database, this.#machine);
  }

  async beginTransaction(connection: TurnConnection<T>): Promise<void> {
    connection.turn = await this.#database.begin(this.#machine);
  }

  async commitTransaction(connection: TurnConnection<T>): Promise<void> {
    await this.#database.commit(connection.turn!);
    connection.turn = null;
  }

  async rollbackTransaction(connection: TurnConnection<T>): Promise<void> {
    if (connection.turn) this.#database.rollback(connection.turn);
    connection.turn = null;
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {}
}

class ManyConnections extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}
