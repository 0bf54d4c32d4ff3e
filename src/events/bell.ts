// Rings in every process that shares the database when something was committed in one of them: an event, or a change that
// people may be looking at. It is rung after the commit, by a statement of its own and only now and then: a NOTIFY inside
// of transactions would make their commits wait for each other. Who needs to hear every ring has to look from time to
// time as well, for a ring can get lost.
import { sql } from 'kysely';
import { type Change, onCommit } from '../db/after-commit.ts';
import type { Db } from '../db/database.ts';
import { listen } from '../db/listener.ts';
import type { Log } from '../lib/log.ts';

const channel = 'sluice_event';
const ringEveryMs = 5;
/** A message of PostgreSQL has at most 8,000 bytes. Who misses changes reads again at the next one. */
const maxChanges = 50;

export interface Bell {
  stop(): Promise<void>;
}

export interface BellParts {
  db: Db;
  /** null: there is no other process. */
  databaseUrl: string | null;
  /** Unlike that of any other process. */
  id: string;
  log: Log;
  /** An event was committed, or may have been. */
  heard(): void;
  changed(changes: Change[]): void;
}

/** What the processes say to each other. */
interface Message {
  from: string;
  event: boolean;
  changes: Change[];
}

export function startBell({ db, databaseUrl, id, log, heard, changed }: BellParts): Bell {
  const bell = databaseUrl === null ? null : new Ringing(db, id, log);
  const forgetEvents = onCommit(db, 'event', () => {
    heard();
    bell?.ring(true, []);
  });
  const forgetChanges = onCommit(db, 'change', (changes) => {
    changed(changes);
    bell?.ring(false, changes);
  });
  const listener =
    databaseUrl === null
      ? null
      : listen(databaseUrl, channel, (text) => {
          const message = text === null ? null : (JSON.parse(text) as Message);
          if (message?.from === id) return;
          if (message === null || message.event) heard();
          if (message !== null && message.changes.length > 0) changed(message.changes);
        });
  return {
    async stop() {
      forgetEvents();
      forgetChanges();
      bell?.stop();
      await listener?.stop();
    },
  };
}

/** The first of many rings at once goes out at once; the others together, a moment later. */
class Ringing {
  readonly #db: Db;
  readonly #id: string;
  readonly #log: Log;
  #quiet: NodeJS.Timeout | null = null;
  #event = false;
  #changes: Change[] = [];

  constructor(db: Db, id: string, log: Log) {
    this.#db = db;
    this.#id = id;
    this.#log = log;
  }

  ring(event: boolean, changes: Change[]): void {
    this.#event ||= event;
    this.#changes.push(...changes);
    if (this.#quiet === null) this.#send();
  }

  stop(): void {
    if (this.#quiet) clearTimeout(this.#quiet);
    this.#event = false;
    this.#changes = [];
  }

  #send(): void {
    const message: Message = { from: this.#id, event: this.#event, changes: this.#changes.slice(0, maxChanges) };
    this.#event = false;
    this.#changes = [];
    this.#quiet = setTimeout(() => {
      this.#quiet = null;
      if (this.#event || this.#changes.length > 0) this.#send();
    }, ringEveryMs);
    sql`select pg_notify(${channel}, ${JSON.stringify(message)})`
      .execute(this.#db)
      .catch((error) => this.#log.debug({ err: error }, 'other processes were not woken'));
  }
}
