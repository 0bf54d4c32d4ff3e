// The regions of this service, and whether their engines were available when this process last checked.
import { ApiError } from '../contract/errors.ts';
import type { Engine } from '../engines/engine.ts';
import type { Clock } from '../lib/clock.ts';

export interface RegionState {
  name: string;
  engine: Engine;
  available: boolean;
  lastCheckedAt: number | null;
}

export class Regions {
  readonly #states: Map<string, RegionState>;
  readonly #clock: Clock;

  constructor(engines: { name: string; engine: Engine }[], clock: Clock) {
    this.#states = new Map(
      engines.map(({ name, engine }) => [name, { name, engine, available: true, lastCheckedAt: null }]),
    );
    this.#clock = clock;
  }

  all(): RegionState[] {
    return [...this.#states.values()];
  }

  /** The named region, or the first one if none is named. */
  choose(name: string | undefined): string {
    if (name === undefined) return this.all()[0]!.name;
    if (this.#states.has(name)) return name;
    const known = [...this.#states.keys()].join(', ');
    throw new ApiError('region_unknown', `There is no region ${name}.`, {
      details: [{ path: 'body.region', message: `must be one of ${known}` }],
    });
  }

  find(name: string): RegionState | undefined {
    return this.#states.get(name);
  }

  /** Throws 503 if the region's engine does not answer, or if the region is no longer configured. */
  requireAvailable(name: string): void {
    if (this.find(name)?.available) return;
    throw new ApiError('region_unavailable', `The region ${name} is not available.`, {
      headers: { 'Retry-After': '5' },
      details: [{ path: 'region', message: name }],
    });
  }

  async check(): Promise<void> {
    await Promise.all(
      this.all().map(async (state) => {
        state.available = await state.engine.probe().then(
          () => true,
          () => false,
        );
        state.lastCheckedAt = this.#clock.now();
      }),
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.all().map(({ engine }) => engine.close()));
  }
}
