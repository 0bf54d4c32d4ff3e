// The collection of one instance's log: follows it from behind what is stored, and goes on after every failure until it is
// told to stop or there is nothing more to come.
import { setTimeout as pause } from 'node:timers/promises';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import type { Engine } from '../../engines/engine.ts';
import type { Log } from '../../lib/log.ts';
import { parsePosition } from '../../lib/log-position.ts';
import { type LoggedInstance, openStream } from '../store/segments.ts';
import { Tail, type TailParts } from './tail.ts';

export interface CollectionParts extends TailParts {
  log: Log;
  /** Gets what was collected, before it is stored. */
  onLines(instance: LoggedInstance, lines: Buffer): void;
}

/** The first lines after a while are stored soon, so that they are seen; more of them in rounds. */
const firstWriteMs = 200;
const writeEveryMs = 1000;
const retryMs = 500;

export class Collection {
  readonly instance: LoggedInstance;
  readonly #parts: CollectionParts;
  readonly #engine: Engine;
  readonly #stopping = new AbortController();
  #writtenAt = 0;
  #timer: NodeJS.Timeout | null = null;
  /** Settles when nothing more is collected; never rejects. */
  readonly done: Promise<void>;
  isDone = false;

  constructor(parts: CollectionParts, instance: LoggedInstance, engine: Engine) {
    this.#parts = parts;
    this.instance = instance;
    this.#engine = engine;
    this.done = this.#run().finally(() => {
      this.isDone = true;
    });
  }

  /** What was read is stored all the same. */
  stop(): Promise<void> {
    this.#stopping.abort();
    return this.done;
  }

  async #run(): Promise<void> {
    const { log } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#followOnce(signal);
        return;
      } catch (error) {
        if (error instanceof ChangedMeanwhile) return;
        log.debug({ err: error, instance: this.instance.id }, 'collecting a log was interrupted');
        await pause(retryMs, undefined, { signal }).catch(() => {});
      }
    }
  }

  /** What could not be stored is read again from the engine. */
  async #followOnce(signal: AbortSignal): Promise<void> {
    const { db, clock, onLines } = this.#parts;
    const stream = await openStream(db, this.instance, clock.now());
    if (!stream) return;
    const position = stream.position === null ? null : parsePosition(stream.position);
    const tail = new Tail(this.#parts, this.instance, stream, position);
    const failing = new AbortController();
    const until = AbortSignal.any([signal, failing.signal]);
    try {
      for await (const lines of this.#engine.follow!(this.instance.id, position, until)) {
        onLines(this.instance, lines);
        await tail.add(lines);
        this.#writeSoon(tail, (error) => failing.abort(error));
      }
      failing.signal.throwIfAborted();
      await tail.write();
    } finally {
      if (this.#timer) clearTimeout(this.#timer);
      this.#timer = null;
      await tail.forget();
    }
  }

  #writeSoon(tail: Tail, fail: (error: unknown) => void): void {
    if (this.#timer) return;
    const waitMs = Math.max(firstWriteMs, this.#writtenAt + writeEveryMs - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#writtenAt = performance.now();
      tail.write().catch(fail);
    }, waitMs);
  }
}
