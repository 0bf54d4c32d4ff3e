import type { Readable } from 'node:stream';
import { quotaExceeded } from '../../contract/errors.ts';
import { findEnvironment } from '../../environments/queries.ts';
import { type Clock, sharedOf } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { subscribe } from '../../signals/signals.ts';
import { listValidTokens } from '../../tokens/queries.ts';
import { listSegments } from '../store/segments.ts';
import { type LogFollower, LogStream } from './live.ts';
import { endOfTimeMs, type ReadParts } from './page.ts';

const maxPerAccount = 50;
const checkEveryMs = 1000;

export interface StreamsParts extends ReadParts {
  clock: Clock;
  log: Log;
}

/** Everyone who follows a log. */
export class LogStreams {
  readonly #parts: StreamsParts;
  readonly #open = new Set<LogStream>();
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
    const nowMs = sharedOf(clock).now();
    const everything = { fromMs: 0, toMs: endOfTimeMs };
    const existing = follower.fromMs === null ? await listSegments(db, follower.key, everything) : [];
    const stream = new LogStream(this.#parts, follower, existing, nowMs);
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
const concerns = ({ follower: { key } }: LogStream, changed: Changed): boolean =>
  changed.length === 0 ||
  changed.some(({ projectId, environment }) => projectId === key.projectId && environment === key.environment);
