// Collects the logs of all instances that this process looks after. On PostgreSQL those are the ones of the environments
// whose lease it holds; should two processes collect the same log for a moment, the one that writes second is refused
// (store/segments.ts).
import type { Engine } from '../../engines/engine.ts';
import type { Loop, Loops } from '../../lib/loops.ts';
import type { Regions } from '../../regions/regions.ts';
import type { LoggedInstance } from '../store/segments.ts';
import { Collection, type CollectionParts } from './collection.ts';
import { listWanted, type WantedInstance } from './wanted.ts';

export interface CollectorParts extends CollectionParts {
  loops: Loops;
  regions: Regions;
  /** null: there is no other process. */
  owner: string | null;
}

/** Those that this process starts are followed at once; this finds those that another one started. */
const lookEveryMs = 5000;
/** How long the removal of an instance waits for its last lines. */
const takeWithinMs = 5000;

export class Collector {
  readonly #parts: CollectorParts;
  readonly #collections = new Map<string, Collection>();
  #loop: Loop | null = null;
  #isRunning = false;

  constructor(parts: CollectorParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#isRunning = true;
    this.#loop = this.#parts.loops.start({ name: 'logs', intervalMs: lookEveryMs, step: () => this.#look() });
  }

  async stop(): Promise<void> {
    // Instances may still be started: the next process finds them.
    this.#isRunning = false;
    await this.#loop?.stop();
    await Promise.all([...this.#collections.values()].map((collection) => collection.stop()));
  }

  /** To be called when an instance has started. */
  follow(instance: LoggedInstance, engine: Engine): void {
    if (this.#isRunning && engine.follow) this.#collectionOf(instance, engine);
  }

  /** To be called when an instance has ended and is about to be removed: its last lines are stored, unless that hangs. */
  async take(instance: LoggedInstance, engine: Engine): Promise<void> {
    if (!engine.follow) return;
    // One that runs ends by itself, because the log does.
    const collection = this.#collectionOf(instance, engine);
    const late = Promise.withResolvers<'late'>();
    const timer = setTimeout(() => late.resolve('late'), takeWithinMs);
    const outcome = await Promise.race([collection.done, late.promise]);
    clearTimeout(timer);
    if (outcome === 'late') {
      this.#parts.log.warn({ instance: instance.id }, 'the last lines of an instance were not collected in time');
      void collection.stop();
    }
  }

  async #look(): Promise<void> {
    const { db, owner, regions } = this.#parts;
    const wanted = new Map((await listWanted(db, owner)).map((instance) => [instance.id, instance]));
    for (const [id, collection] of this.#collections) {
      if (collection.isDone) this.#collections.delete(id);
      // One whose row is gone is being removed, and ends with its log; with the lease, another process goes on.
      else if (!wanted.has(id) && owner !== null && (await this.#isElsewhere(collection))) void collection.stop();
    }
    for (const instance of wanted.values()) {
      const region = regions.find(instance.region);
      if (region?.available && region.engine.follow) this.#collectionOf(instance, region.engine);
    }
  }

  async #isElsewhere({ instance }: Collection): Promise<boolean> {
    const row = await this.#parts.db
      .selectFrom('instance')
      .select('id')
      .where('id', '=', instance.id)
      .executeTakeFirst();
    return row !== undefined;
  }

  #collectionOf(instance: LoggedInstance | WantedInstance, engine: Engine): Collection {
    const known = this.#collections.get(instance.id);
    if (known && !known.isDone) return known;
    const collection = new Collection(this.#parts, instance, engine);
    this.#collections.set(instance.id, collection);
    return collection;
  }
}
