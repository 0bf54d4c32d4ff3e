// The regions of this service, whether their engines answered when this process last asked, and which engine each
// region had before, remembered across restarts and processes.
import { ApiError } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';
import type { Engine } from '../engines/engine.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';

export interface RegionState {
  name: string;
  engine: Engine;
  available: boolean;
  lastCheckedAt: number | null;
}

/** What runs in this environment may have changed; null: what runs in the whole region. */
export interface RegionChange {
  region: string;
  environment: { projectId: string; environment: string } | null;
}

type Listener = (change: RegionChange) => void;

export class Regions {
  readonly #states: Map<string, RegionState>;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #listeners = new Set<Listener>();
  /** By region: the latest check, and the one that has not begun yet. */
  readonly #latest = new Map<string, Promise<void>>();
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(engines: { name: string; engine: Engine }[], clock: Clock, log: Log) {
    this.#states = new Map(
      engines.map(({ name, engine }) => [name, { name, engine, available: true, lastCheckedAt: null }]),
    );
    this.#clock = clock;
    this.#log = log;
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

  async checkAll(): Promise<void> {
    await Promise.all([...this.#states.keys()].map((name) => this.check(name)));
  }

  /** Asks the engine, after a check that is under way: that one may have begun before what this one is about. */
  check(name: string): Promise<void> {
    const waiting = this.#waiting.get(name);
    if (waiting) return waiting;
    const check = (this.#latest.get(name) ?? Promise.resolve()).then(() => {
      this.#waiting.delete(name);
      return this.#check(name);
    });
    this.#waiting.set(name, check);
    this.#latest.set(name, check);
    return check;
  }

  /** Notifies the listener when a region is back, and of the changes that engines report. Returns what ends it. */
  watch(listener: Listener): () => void {
    this.#listeners.add(listener);
    const ends = this.all().map(({ name, engine }) =>
      engine.watch?.((change) => {
        if (change === null) void this.#checkAndNotify(name, listener);
        else listener({ region: name, environment: { projectId: change.project, environment: change.environment } });
      }),
    );
    return () => {
      this.#listeners.delete(listener);
      for (const end of ends) end?.();
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.all().map(({ engine }) => engine.close()));
  }

  async #checkAndNotify(region: string, listener: Listener): Promise<void> {
    await this.check(region);
    if (this.#listeners.has(listener)) listener({ region, environment: null });
  }

  async #check(region: string): Promise<void> {
    const state = this.#states.get(region);
    if (!state) return;
    const wasAvailable = state.available;
    const fault = await state.engine.probe().then(
      () => null,
      (error) => error as Error,
    );
    state.available = fault === null;
    state.lastCheckedAt = this.#clock.now();
    if (state.available === wasAvailable) return;
    if (fault) this.#log.warn({ region, reason: fault.message }, 'a region does not answer');
    else this.#log.info({ region }, 'a region answers again');
    if (fault === null) for (const listener of this.#listeners) listener({ region, environment: null });
  }
}

const rowName = (region: string): string => `engine.${region}`;

/** null: the region has had none. */
export async function findRememberedEngine(db: Db, region: string): Promise<string | null> {
  const row = await db.selectFrom('meta').select('value').where('name', '=', rowName(region)).executeTakeFirst();
  return row?.value ?? null;
}

export async function rememberEngine(db: Db, region: string, engine: string): Promise<void> {
  await db
    .insertInto('meta')
    .values({ name: rowName(region), value: engine })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: engine }))
    .execute();
}

/** Gives what is remembered then: of several processes that start at once, the first one decides for all. */
export async function rememberFirstEngine(db: Db, region: string, engine: string): Promise<string> {
  await db
    .insertInto('meta')
    .values({ name: rowName(region), value: engine })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
  return (await findRememberedEngine(db, region)) ?? engine;
}

export async function countInstancesIn(db: Db, region: string): Promise<number> {
  const row = await db
    .selectFrom('instance')
    .select((e) => e.fn.countAll().as('count'))
    .where('region', '=', region)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}
