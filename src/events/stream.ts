// The live stream: server-sent events in the order of commits. Each follower has a position; when a signal arrives, or a
// second has passed, it reads on from there. A follower that reads slowly is sent no more until it has read.
import { Readable } from 'node:stream';
import { quotaExceeded } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';
import type { DialectName } from '../db/migrations/types.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { subscribe, type Topics } from '../signals/signals.ts';
import { type EventFilter, listCommitted, type Position } from './queries.ts';

export interface StreamParts {
  db: Db;
  dialect: DialectName;
  clock: Clock;
  log: Log;
}

const pollMs = 1000;
/** How soon to look again for events that an older open transaction holds back. */
const heldBackMs = 20;
const heartbeatMs = 15_000;
const pageSize = 100;
const maxPerAccount = 100;
const maxWaitingBytes = 64 * 1024;

type Change = Topics['changes'];

export interface Follower {
  filter: EventFilter;
  from: Position;
  /** Also gets hints about changes that are no events. */
  changes: boolean;
  /** Asked now and then: whether the token may still see this. */
  isAllowed(): Promise<boolean>;
}

class EventStream extends Readable {
  readonly accountId: string;
  readonly #parts: StreamParts;
  readonly #follower: Follower;
  #position: Position;
  #wanted = false;
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
    // The head goes out at once, and clients that lost the connection come back soon.
    this.push('retry: 2000\n\n');
  }

  override _read(): void {
    this.#wanted = true;
    this.readOn();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#clearTimers();
    callback(error);
  }

  /** Only a hint: a client that reads slowly, or lost its connection, reads everything again anyway. */
  hint(changes: Change[]): void {
    const { filter, changes: wants } = this.#follower;
    if (!wants || this.destroyed || this.readableEnded || this.readableLength > maxWaitingBytes) return;
    for (const { accountId, projectId, environment } of changes) {
      if (accountId !== filter.accountId) continue;
      if (filter.projectIds !== null && (projectId === null || !filter.projectIds.includes(projectId))) continue;
      this.push(`event: changed\ndata: ${JSON.stringify({ project_id: projectId, environment })}\n\n`);
    }
  }

  readOn(): void {
    this.#again = true;
    if (this.#reading || !this.#wanted || this.destroyed || this.readableEnded) return;
    this.#reading = true;
    this.#readAll()
      .catch((error) => {
        this.#parts.log.warn({ err: error }, 'an event stream ended');
        this.end();
      })
      .finally(() => {
        this.#reading = false;
        // A signal that came after the last read ended would otherwise be lost.
        if (this.#again) this.readOn();
      });
  }

  end(): void {
    this.#clearTimers();
    if (!this.destroyed && !this.readableEnded) this.push(null);
    this.#wanted = false;
  }

  #clearTimers(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#heldBack);
  }

  async #readAll(): Promise<void> {
    const { db, dialect, clock } = this.#parts;
    while (this.#again && this.#wanted && !this.destroyed) {
      this.#again = false;
      const { filter } = this.#follower;
      const { rows, held } = await listCommitted(db, dialect, filter, this.#position, clock.now(), pageSize);
      if (this.destroyed || !this.#wanted) return;
      for (const row of rows) {
        this.#position = { tx: row.tx, id: row.id };
        this.#wanted = this.push(`id: ${row.id}\nevent: ${row.type}\ndata: ${row.body}\n\n`);
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
    if (!this.destroyed && this.#wanted) this.#wanted = this.push(': still here\n\n');
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

  /** Followers come back to another process, and resume where they were. */
  stop(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    for (const stream of this.#open) stream.end();
  }
}
