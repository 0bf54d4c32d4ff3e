import type { EngineInstance } from '../../../engines/engine.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { RegionState } from '../../../regions/regions.ts';

const sharedForMs = 150;
/** A long list is shared for longer, so that getting it takes a tenth of the time at most, however many instances run. */
const sharedForTimes = 10;
const longestSharedMs = 2000;

interface Shared {
  until: number;
  list: Promise<Running>;
}

/** By the instance's id. */
export type Running = ReadonlyMap<string, EngineInstance>;

/** Called with every list before any look has it: what a look starts comes after what this does. */
export type Heed = (region: string, running: Running, listAgain: () => Promise<Running>) => Promise<void>;

/** What the engines run. Looks at about the same time share one question to the engine, until something changes. */
export class EngineLists {
  readonly #lists = new Map<string, Shared>();
  readonly #clock: Clock;
  readonly #heed: Heed;

  constructor(clock: Clock, heed: Heed) {
    this.#clock = clock;
    this.#heed = heed;
  }

  of({ name, engine }: RegionState): Promise<Running> {
    const nowMs = this.#clock.now();
    const known = this.#lists.get(name);
    if (known && nowMs < known.until) return known.list;
    const ask = async () => new Map((await engine.list()).map((instance) => [instance.id, instance]));
    const list = ask().then(async (running) => {
      await this.#heed(name, running, ask);
      const tookMs = this.#clock.now() - nowMs;
      shared.until = Math.max(shared.until, nowMs + Math.min(tookMs * sharedForTimes, longestSharedMs));
      return running;
    });
    const shared = { until: nowMs + sharedForMs, list };
    this.#lists.set(name, shared);
    list.catch(() => {
      if (this.#lists.get(name) === shared) this.#lists.delete(name);
    });
    return list;
  }

  /** Something changed: the next look asks the engine again. */
  clear(): void {
    this.#lists.clear();
  }
}
