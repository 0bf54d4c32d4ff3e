import type { EngineInstance } from '../../engines/engine.ts';
import type { Clock } from '../../lib/clock.ts';
import type { RegionState } from '../../regions/regions.ts';

const sharedForMs = 150;

/** What the engines run. Looks at about the same time share one question to the engine. */
export class EngineLists {
  readonly #lists = new Map<string, { at: number; list: Promise<Map<string, EngineInstance>> }>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** By the instance's id. */
  of(region: RegionState): Promise<Map<string, EngineInstance>> {
    const nowMs = this.#clock.now();
    const known = this.#lists.get(region.name);
    if (known && nowMs - known.at < sharedForMs) return known.list;
    const list = region.engine.list().then((all) => new Map(all.map((instance) => [instance.id, instance])));
    this.#lists.set(region.name, { at: nowMs, list });
    list.catch(() => this.#lists.delete(region.name));
    return list;
  }

  /** Something changed: the next look asks the engine again. */
  clear(): void {
    this.#lists.clear();
  }
}
