// The live stream: server-sent events in commit order. Each stream has a position and reads on from there when a signal
// arrives, or every second. A client that reads slowly is sent nothing more until it has caught up.
import { Readable } from 'node:stream';
import { quotaExceeded } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';
import type { DialectName } from '../db/migrations/types.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { subscribe, type Topics } from '../signals/signals.ts';
import { type EventFilter, listCommitted, type Position } from './queries.ts';

interface StreamParts {
  db: Db;
  dialect: DialectName;
  clock: Clock;
  log: Log;
}

const pollMs = 1000;
/** How soon to read again if an older open transaction holds events back. */
const heldBackMs = 20;
const heartbeatMs = 15_000;
const pageSize = 100;
const maxPerAccount = 100;
const maxWaitingBytes = 64 * 1024;

type Change = Topics['changes'];

interface Follower {
  filter: EventFilter;
  from: Position;
  /** Whether the client also gets hints about changes that are not events. */
  changes: boolean;
  /** Checked with every heartbeat: whether the token is still valid. */
  isAllowed(): Promise<boolean>;
}

class EventStream extends Readable {
  readonly accountId: string;
  readonly #parts: StreamParts;
  readonly #follower: Follower;
  #position: Position;
  /** The client can take more. */
  #hasRoom = false;
  #reading = false;
  #again = false;
  #beatAt: number;
  readonly #timer: NodeJS.Timeout;
  #heldBack: NodeJS.Timeout | undefined;

  constructor(parts: StreamParts, follower: Follower) {
    super({ highWaterMark: 256 * 1024 });
    this.accountId = follower.filter.accountId;
    this.#parts = parts;
    this.#follower = follower;
    this.#position = follower.from;
    this.#beatAt = parts.clock.now() + heartbeatMs;
    this.#timer = setInterval(() => this.readOn(), pollMs);
    // Sends the headers at once, and tells clients to reconnect soon after a lost connection.
    this.push('retry: 2000\n\n');
  }

  override _read(): void {
    this.#hasRoom = true;
    this.readOn();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#clearTimers();
    callback(error);
  }

  /** Hints may be dropped: a client that reads slowly or lost its connection reads everything again anyway. */
  hint(changes: Change[]): void {
    const { filter, changes: wantsHints } = this.#follower;
    if (!wantsHints || this.destroyed || this.readableEnded || this.readableLength > maxWaitingBytes) return;
    for (const { accountId, projectId, environment } of changes) {
      if (accountId !== filter.accountId) continue;
      if (filter.projectIds !== null && (projectId === null || !filter.projectIds.includes(projectId))) continue;
      this.push(`event: changed\ndata: ${JSON.stringify({ project_id: projectId, environment })}\n\n`);
    }
  }

  readOn(): void {
    this.#again = true;
    if (this.#reading || !this.#hasRoom || this.destroyed || this.readableEnded) return;
    this.#reading = true;
    this.#readAll()
      .catch((error) => {
        this.#parts.log.warn({ err: error }, 'event stream failed');
        this.end();
      })
      .finally(() => {
        this.#reading = false;
        // A signal may have arrived after the last read.
        if (this.#again) this.readOn();
      });
  }

  end(): void {
    this.#clearTimers();
    if (!this.destroyed && !this.readableEnded) this.push(null);
    this.#hasRoom = false;
  }

  #clearTimers(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#heldBack);
  }

  async #readAll(): Promise<void> {
    const { db, dialect, clock } = this.#parts;
    while (this.#again && this.#hasRoom && !this.destroyed) {
      this.#again = false;
      const { filter } = this.#follower;
      const { rows, held } = await listCommitted(db, dialect, filter, this.#position, clock.now(), pageSize);
      if (this.destroyed || !this.#hasRoom) return;
      for (const row of rows) {
        this.#position = { tx: row.tx, id: row.id };
        this.#hasRoom = this.push(`id: ${row.id}\nevent: ${row.type}\ndata: ${row.body}\n\n`);
      }
      if (rows.length === pageSize) this.#again = true;
      else if (held) this.#lookAgainSoon();
      if (clock.now() >= this.#beatAt) await this.#beat();
    }
  }

  #lookAgainSoon(): void {
    clearTimeout(this.#heldBack);
    this.#heldBack = setTimeout(() => this.readOn(), heldBackMs);
  }

  async #beat(): Promise<void> {
    this.#beatAt = this.#parts.clock.now() + heartbeatMs;
    if (!(await this.#follower.isAllowed())) return this.end();
    if (!this.destroyed && this.#hasRoom) this.#hasRoom = this.push(': still here\n\n');
  }
}

export class EventStreams {
  readonly #parts: StreamParts;
  readonly #open = new Set<EventStream>();
  readonly #unsubscribe: (() => void)[];

  constructor(parts: StreamParts) {
    this.#parts = parts;
    this.#unsubscribe = [
      subscribe(parts.db, 'events', () => {
        for (const stream of this.#open) stream.readOn();
      }),
      subscribe(parts.db, 'changes', (changes) => {
        for (const stream of this.#open) stream.hint(changes);
      }),
    ];
  }

  follow(follower: Follower): Readable {
    const own = [...this.#open].filter(({ accountId }) => accountId === follower.filter.accountId);
    if (own.length >= maxPerAccount) {
      throw quotaExceeded(`An account follows at most ${maxPerAccount} streams at once.`, 'streams', maxPerAccount);
    }
    const stream = new EventStream(this.#parts, follower);
    this.#open.add(stream);
    stream.once('close', () => this.#open.delete(stream));
    return stream;
  }

  /** Clients reconnect, perhaps to another process, and resume where they were. */
  stop(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    for (const stream of this.#open) stream.end();
  }
}
