// Writes down how deliveries went. What is finished while one batch is being written makes the next batch.
import type { Db } from '../../db/database.ts';
import type { DialectName } from '../../db/migrations/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { type Finished, healthChanges } from '../sending/outcome.ts';
import { completeDeliveries, markHealth } from './complete.ts';

export interface OutcomeWriterParts {
  db: Db;
  dialect: DialectName;
  clock: Clock;
  log: Log;
  random: () => number;
  /** These are in the database now. */
  onWritten(batch: Finished[]): void;
  /** Endpoints that were just disabled: what is pending for them is to be given up. */
  onDisabled(): void;
}

const lingerMs = 15;
const tryAgainAfterMs = 1000;
/** Answers that are kept take up room: a batch of the longest is some megabytes. */
const maxBatch = 200;

export class OutcomeWriter {
  readonly #parts: OutcomeWriterParts;
  #finished: Finished[] = [];
  #writing: Promise<void> | null = null;
  #stopping = false;

  constructor(parts: OutcomeWriterParts) {
    this.#parts = parts;
  }

  add(finished: Finished): void {
    this.#finished.push(finished);
    this.#writing ??= this.#write();
  }

  /** All that was added is written, or the database cannot be reached. */
  async stop(): Promise<void> {
    this.#stopping = true;
    while (this.#writing) await this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#finished.length > 0) {
      await this.#linger();
      const batch = this.#finished.slice(0, maxBatch);
      try {
        await this.#writeBatch(batch);
      } catch (error) {
        // Nothing is lost: what is not written down is sent again once its lease has run out. Until then, try again.
        this.#parts.log.error({ err: error }, 'how deliveries went could not be written');
        if (this.#stopping) break;
        await new Promise((resolve) => setTimeout(resolve, tryAgainAfterMs));
      }
    }
    this.#writing = null;
  }

  /**
   * What finishes in the next moment goes along. But where the order is strict the next one waits for this, and one that
   * fails should be sent no more than it can take.
   */
  #linger(): Promise<unknown> {
    const urgent =
      this.#stopping ||
      this.#finished.length >= maxBatch ||
      this.#finished.some(({ strict, succeeded }) => strict || !succeeded);
    return new Promise((resolve) => (urgent ? setImmediate(resolve) : setTimeout(resolve, lingerMs)));
  }

  async #writeBatch(batch: Finished[]): Promise<void> {
    const { db, dialect, clock, random } = this.#parts;
    await completeDeliveries(
      db,
      dialect,
      batch.map(({ outcome }) => outcome),
    );
    this.#finished.splice(0, batch.length);
    this.#parts.onWritten(batch);
    const changed = healthChanges(batch);
    if (changed.length === 0) return;
    const disabled = await markHealth(db, changed, clock.now(), random());
    if (disabled.length > 0) this.#parts.onDisabled();
  }
}
