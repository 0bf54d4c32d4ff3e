// Live streams of the log of an environment, over restarts and rollouts: `LogStreams` keeps those that are open, each
// `LogEventStream` reads on in the segments that have grown.
import type { Readable } from 'node:stream';
import { quotaExceeded } from '../../contract/errors.ts';
import type { EnvironmentKey } from '../../environments/environment-key.ts';
import { findEnvironment } from '../../environments/environment-queries.ts';
import { type Clock, databaseOf } from '../../lib/clock.ts';
import { FollowStream } from '../../lib/follow-stream.ts';
import type { Log } from '../../lib/log.ts';
import { subscribe } from '../../signals/signals.ts';
import { listValidTokens } from '../../tokens/token-queries.ts';
import { listChangedSegments, listSegments, type SegmentRow } from '../store/segments.ts';
import {
  comparePlaces,
  endOfTimeMs,
  isLarge,
  type PageQuery,
  type PlacedEntry,
  presentEntry,
  type ReadParts,
  resumeId,
  scanSegment,
} from './log-page.ts';

const maxPerAccount = 50;
const checkEveryMs = 1000;

interface StreamsParts extends ReadParts {
  clock: Clock;
  log: Log;
}

/** All open streams. */
export class LogStreams {
  readonly #parts: StreamsParts;
  readonly #open = new Set<LogEventStream>();
  readonly #unsubscribe: (() => void)[];
  readonly #timer: NodeJS.Timeout;

  constructor(parts: StreamsParts) {
    this.#parts = parts;
    this.#unsubscribe = [
      subscribe(parts.db, 'logs', (changed) => {
        for (const stream of this.#open) if (concerns(stream, changed)) stream.readOn();
      }),
      subscribe(parts.db, 'tokens', () => void this.#endUnauthorized()),
    ];
    this.#timer = setInterval(() => void this.#endUnauthorized(), checkEveryMs).unref();
  }

  async follow(follower: LogFollower): Promise<Readable> {
    const own = [...this.#open].filter((stream) => stream.follower.accountId === follower.accountId);
    if (own.length >= maxPerAccount) {
      throw quotaExceeded(`An account follows at most ${maxPerAccount} logs at once.`, 'log streams', maxPerAccount);
    }
    const { db, clock } = this.#parts;
    const nowMs = databaseOf(clock).now();
    const everything = { fromMs: 0, toMs: endOfTimeMs };
    const existing = follower.fromMs === null ? await listSegments(db, follower.key, everything) : [];
    const stream = new LogEventStream(this.#parts, follower, existing, nowMs);
    this.#open.add(stream);
    stream.once('close', () => this.#open.delete(stream));
    return stream;
  }

  /** Those whose token was revoked or has expired, or whose environment is gone. */
  async #endUnauthorized(): Promise<void> {
    const { db, clock, log } = this.#parts;
    if (this.#open.size === 0) return;
    try {
      const used = [...new Set([...this.#open].map(({ follower }) => follower.tokenId))];
      const valid = new Set(await listValidTokens(db, used, clock.now()));
      for (const stream of this.#open) {
        const { tokenId, key } = stream.follower;
        if (!valid.has(tokenId) || !(await findEnvironment(db, key.projectId, key.environment))) stream.end();
      }
    } catch (error) {
      log.warn({ err: error }, 'failed to check the tokens of log streams');
    }
  }

  /** Clients reconnect, perhaps to another process, and resume where they were. */
  stop(): void {
    clearInterval(this.#timer);
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    for (const stream of this.#open) stream.end();
  }
}

type Changed = { projectId: string; environment: string }[];

/** An empty list: some signals of another process may be lost. */
const concerns = ({ follower: { key } }: LogEventStream, changed: Changed): boolean =>
  changed.length === 0 ||
  changed.some(({ projectId, environment }) => projectId === key.projectId && environment === key.environment);

interface LogFollower {
  accountId: string;
  /** The stream ends with this token, or this session of the console. */
  tokenId: string;
  key: EnvironmentKey;
  filter: Pick<PageQuery, 'revision' | 'instance' | 'kind' | 'search'>;
  /** Entries of this time or later; null: those that come from now on. */
  fromMs: number | null;
  /** The client has this one and those before it. */
  after: { instance: string; seq: number; offset: number } | null;
}

/** How far the segments of an instance were read: of this one, all up to a byte, and behind that up to an entry. */
interface Seen {
  seq: number;
  toByte: number;
  lastOffset: number;
}

const entriesAtOnce = 500;
/** Segments that other processes have written may be a little older than what was seen of this one's. */
const clocksDifferMs = 30_000;

class LogEventStream extends FollowStream {
  readonly follower: LogFollower;
  readonly #parts: ReadParts & { log: Log };
  readonly #seen = new Map<string, Seen>();
  #changedSince: number;

  /** `existing`: the segments that are there when it begins. */
  constructor(parts: ReadParts & { log: Log }, follower: LogFollower, existing: SegmentRow[], nowMs: number) {
    super({
      clock: { now: () => performance.now() },
      onFailure: (error) => parts.log.warn({ err: error }, 'a stream of logs failed'),
    });
    this.follower = follower;
    this.#parts = parts;
    this.#changedSince = follower.fromMs === null ? nowMs : 0;
    for (const row of existing) {
      if (follower.fromMs === null) this.#markRead(row);
    }
    const { after } = follower;
    if (after) this.#seen.set(after.instance, { seq: after.seq, toByte: 0, lastOffset: after.offset });
  }

  /** Everything that was written since the last round; what does not fit waits for the next. */
  protected override async readRound(): Promise<void> {
    const { key, filter } = this.follower;
    const rows = await listChangedSegments(this.#parts.db, key, this.#changedSince - clocksDifferMs);
    let grown = rows.filter((row) => this.#hasGrown(row) && isOf(row, filter));
    grown.sort((a, b) => a.seq - b.seq);
    while (grown.length > 0) {
      // Of each instance one segment at a time, because its place is remembered for one.
      const firstOfEach = grown.filter((row, index) => index === grown.findIndex(sameInstance(row)));
      const round = firstOfEach.sort((a, b) => a.from_at - b.from_at).slice(0, this.#parts.scanners.size);
      const found = await Promise.all(round.map((row) => this.#scan(row)));
      for (const entry of found.flat().sort(comparePlaces)) this.#send(entry);
      for (const [index, row] of round.entries()) this.#note(row, found[index]!);
      if (!this.hasRoom) {
        this.readAgain();
        return;
      }
      grown = grown.filter((row) => this.#hasGrown(row));
    }
    for (const { updated_at } of rows) this.#changedSince = Math.max(this.#changedSince, updated_at);
  }

  #hasGrown({ instance_id, seq, raw_bytes, to_at }: SegmentRow): boolean {
    const seen = this.#seen.get(instance_id);
    if (to_at < (this.follower.fromMs ?? 0)) return false;
    return !seen || seq > seen.seq || (seq === seen.seq && raw_bytes > seen.toByte);
  }

  #scan(row: SegmentRow): Promise<PlacedEntry[]> {
    const { accountId, filter, fromMs } = this.follower;
    const { toByte, lastOffset } = this.#seenOf(row);
    return scanSegment(
      this.#parts,
      row,
      {
        accountId,
        ...filter,
        fromMs: fromMs ?? 0,
        toMs: endOfTimeMs,
        order: 'oldest',
        limit: entriesAtOnce,
        after: null,
      },
      { within: { fromByte: toByte, toByte: row.raw_bytes }, beyond: { time: null, offset: lastOffset } },
    );
  }

  #seenOf({ instance_id, seq }: SegmentRow): Seen {
    const seen = this.#seen.get(instance_id);
    return seen?.seq === seq ? seen : { seq, toByte: 0, lastOffset: -1 };
  }

  #send(entry: PlacedEntry): void {
    const data = JSON.stringify(presentEntry(entry));
    this.send(`id: ${resumeId(entry)}\nevent: entry\ndata: ${data}\n\n`);
  }

  #note(row: SegmentRow, found: PlacedEntry[]): void {
    const isCut = found.length === entriesAtOnce || isLarge(found);
    if (!isCut) this.#markRead(row);
    else this.#seen.set(row.instance_id, { ...this.#seenOf(row), lastOffset: found.at(-1)!.offset });
  }

  #markRead({ instance_id, seq, raw_bytes }: SegmentRow): void {
    const seen = this.#seen.get(instance_id);
    if (!seen || seen.seq <= seq) this.#seen.set(instance_id, { seq, toByte: raw_bytes, lastOffset: -1 });
  }
}

const sameInstance =
  ({ instance_id }: SegmentRow) =>
  (other: SegmentRow): boolean =>
    other.instance_id === instance_id;

const isOf = ({ instance_id, revision }: SegmentRow, filter: LogFollower['filter']): boolean =>
  (filter.instance === undefined || filter.instance === instance_id) &&
  (filter.revision === undefined || filter.revision === revision);
