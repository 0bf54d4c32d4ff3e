// A stream of server-sent events about something that grows. It reads on when it is told that there is more, and every
// second in any case. A client that reads slowly gets nothing more until it has caught up.
import { Readable } from 'node:stream';
import type { Clock } from './clock.ts';

const pollMs = 1000;
const heartbeatMs = 15_000;

interface FollowParts {
  /** One that cannot be set. */
  clock: Clock;
  onFailure(error: unknown): void;
}

export abstract class FollowStream extends Readable {
  readonly #parts: FollowParts;
  readonly #timer: NodeJS.Timeout;
  /** The client can take more. */
  #hasRoom = false;
  /** Nothing more is sent; what was sent may still be on its way. */
  #over = false;
  #reading = false;
  #again = false;
  #beatAt: number;

  constructor(parts: FollowParts) {
    super({ highWaterMark: 256 * 1024 });
    this.#parts = parts;
    this.#beatAt = parts.clock.now() + heartbeatMs;
    this.#timer = setInterval(() => this.readOn(), pollMs);
    // Sends the headers at once, and tells clients to reconnect soon after a lost connection.
    this.push('retry: 2000\n\n');
  }

  /** Sends what has come since the last round, as long as there is room. */
  protected abstract readRound(): Promise<void>;

  protected get hasRoom(): boolean {
    return this.#hasRoom && !this.destroyed;
  }

  protected get isOver(): boolean {
    return this.#over || this.destroyed;
  }

  protected send(text: string): void {
    this.#hasRoom = this.push(text);
  }

  /** There may be more than this round has read. */
  protected readAgain(): void {
    this.#again = true;
  }

  readOn(): void {
    this.#again = true;
    if (this.#reading || !this.#hasRoom || this.isOver) return;
    this.#reading = true;
    this.#readAll()
      .catch((error) => {
        this.#parts.onFailure(error);
        this.end();
      })
      .finally(() => {
        this.#reading = false;
        // A signal may have arrived after the last read.
        if (this.#again) this.readOn();
      });
  }

  async #readAll(): Promise<void> {
    while (this.#again && this.hasRoom) {
      this.#again = false;
      await this.readRound();
      if (this.hasRoom && this.#parts.clock.now() >= this.#beatAt) this.#beat();
    }
  }

  #beat(): void {
    this.#beatAt = this.#parts.clock.now() + heartbeatMs;
    this.send(': still here\n\n');
  }

  end(): void {
    this.clearTimers();
    if (!this.isOver) this.push(null);
    this.#over = true;
    this.#hasRoom = false;
  }

  protected clearTimers(): void {
    clearInterval(this.#timer);
  }

  override _read(): void {
    this.#hasRoom = true;
    this.readOn();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.clearTimers();
    callback(error);
  }
}
