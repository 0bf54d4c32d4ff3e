// The live stream: server-sent events in commit order. Each stream has a position and reads on from there.
import type { Readable } from 'node:stream';
import { quotaExceeded } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';
import type { DialectName } from '../db/dialect.ts';
import { type Clock, monotonicOf } from '../lib/clock.ts';
import { FollowStream } from '../lib/follow-stream.ts';
import type { Log } from '../lib/log.ts';
import { subscribe, type Topics } from '../signals/signals.ts';
import { listValidTokens } from '../tokens/token-queries.ts';
import { findOwnHorizon, findPositionOf, listCommitted, type Position } from './event-positions.ts';
import type { EventFilter } from './event-queries.ts';

interface StreamParts {
  db: Db;
  dialect: DialectName;
  clock: Clock;
  log: Log;
}

const checkTokensMs = 1000;
/** How soon to read again if an older open transaction holds events back. */
const heldBackMs = 20;
/** How long events may be held back before it is asked whether the open transaction is one of this database at all. */
const askWhoHoldsAfterMs = 1000;
const pageSize = 100;
const maxPerAccount = 100;
const maxWaitingBytes = 64 * 1024;

type Change = Topics['changes'];

interface Follower {
  /** The stream ends with this token, or this session of the console. */
  tokenId: string;
  filter: EventFilter;
  from: Position;
  /** Events behind that position that the client does not get: they were there when it began to follow. */
  skipped: Set<string>;
  /**
   * The client asked for what comes after this event, which is not in the database: it gets everything, and is told.
   */
  resetFrom: string | null;
  /** Whether the client also gets hints about changes that are not events. */
  changes: boolean;
}

class EventStream extends FollowStream {
  readonly accountId: string;
  readonly tokenId: string;
  readonly #parts: StreamParts;
  readonly #follower: Follower;
  #position: Position;
  /** The last event sent. */
  #sent: string | null = null;
  readonly #clock: Clock;
  #heldSince: number | null = null;
  #heldBack: NodeJS.Timeout | undefined;

  constructor(parts: StreamParts, follower: Follower) {
    const clock = monotonicOf(parts.clock);
    super({ clock, onFailure: (error) => parts.log.warn({ err: error }, 'event stream failed') });
    this.accountId = follower.filter.accountId;
    this.tokenId = follower.tokenId;
    this.#parts = parts;
    this.#follower = follower;
    this.#position = follower.from;
    this.#clock = clock;
    const { resetFrom } = follower;
    if (resetFrom !== null) {
      this.push(`event: reset\ndata: ${JSON.stringify({ type: 'reset', last_event_id: resetFrom })}\n\n`);
    }
  }

  /** Hints may be dropped: a client that reads slowly or lost its connection reads everything again anyway. */
  hint(changes: Change[]): void {
    const { filter, changes: wantsHints } = this.#follower;
    if (!wantsHints || this.isOver || this.readableLength > maxWaitingBytes) return;
    for (const { accountId, projectId, environment } of changes) {
      if (accountId !== filter.accountId) continue;
      if (filter.projectIds !== null && (projectId === null || !filter.projectIds.includes(projectId))) continue;
      this.push(`event: changed\ndata: ${JSON.stringify({ project_id: projectId, environment })}\n\n`);
    }
  }

  protected override clearTimers(): void {
    super.clearTimers();
    clearTimeout(this.#heldBack);
  }

  protected override async readRound(): Promise<void> {
    const { rows, held } = await this.#readPage();
    if (!this.hasRoom) return;
    for (const row of rows) {
      this.#position = { position: row.position, id: row.id };
      if (this.#follower.skipped.delete(row.id)) continue;
      this.#sent = row.id;
      this.send(`id: ${row.id}\nevent: ${row.type}\ndata: ${row.body}\n\n`);
    }
    if (rows.length === pageSize) this.readAgain();
    else if (held) this.#readAgainSoon();
    if (rows.length === 0 && !held && (await this.#isForgotten())) this.end();
  }

  async #readPage() {
    const { db, dialect } = this.#parts;
    const { filter } = this.#follower;
    const nowMs = this.#clock.now();
    const isHeldLong = this.#heldSince !== null && nowMs - this.#heldSince >= askWhoHoldsAfterMs;
    const horizon = isHeldLong ? await findOwnHorizon(db) : null;
    const page = await listCommitted(db, dialect, filter, this.#position, pageSize, horizon ?? 0);
    this.#heldSince = page.held ? (this.#heldSince ?? nowMs) : null;
    return page;
  }

  /**
   * The last event sent is no longer there: the database lost it, in a failover for example, and goes on from an
   * earlier position, which this stream is past. A client that reconnects is told.
   */
  async #isForgotten(): Promise<boolean> {
    if (this.#sent === null) return false;
    return (await findPositionOf(this.#parts.db, this.accountId, this.#sent)) === null;
  }

  #readAgainSoon(): void {
    clearTimeout(this.#heldBack);
    this.#heldBack = setTimeout(() => this.readOn(), heldBackMs);
  }
}

export class EventStreams {
  readonly #parts: StreamParts;
  readonly #open = new Set<EventStream>();
  readonly #unsubscribe: (() => void)[];
  readonly #timer: NodeJS.Timeout;
  #checking = false;

  constructor(parts: StreamParts) {
    this.#parts = parts;
    this.#unsubscribe = [
      subscribe(parts.db, 'events', () => {
        for (const stream of this.#open) stream.readOn();
      }),
      subscribe(parts.db, 'changes', (changes) => {
        for (const stream of this.#open) stream.hint(changes);
      }),
      subscribe(parts.db, 'tokens', (revoked) => {
        if (revoked.length === 0) void this.#endUnauthorized();
        else this.#endAllOf(new Set(revoked.map(({ tokenId }) => tokenId)));
      }),
    ];
    this.#timer = setInterval(() => void this.#endUnauthorized(), checkTokensMs).unref();
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

  #endAllOf(tokenIds: ReadonlySet<string>): void {
    for (const stream of this.#open) if (tokenIds.has(stream.tokenId)) stream.end();
  }

  /** For tokens that expire, and in case a signal was lost. */
  async #endUnauthorized(): Promise<void> {
    const { db, clock, log } = this.#parts;
    const used = new Set([...this.#open].map(({ tokenId }) => tokenId));
    if (this.#checking || used.size === 0) return;
    this.#checking = true;
    try {
      const valid = new Set(await listValidTokens(db, [...used], clock.now()));
      this.#endAllOf(used.difference(valid));
    } catch (error) {
      log.warn({ err: error }, 'failed to check the tokens of event streams');
    } finally {
      this.#checking = false;
    }
  }

  /** Clients reconnect, perhaps to another process, and resume where they were. */
  stop(): void {
    clearInterval(this.#timer);
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    for (const stream of this.#open) stream.end();
  }
}
