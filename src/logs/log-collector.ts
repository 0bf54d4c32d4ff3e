// Collects the logs of all instances that this process is responsible for. On PostgreSQL those are the instances of the
// environments whose lease it holds; if two processes collect the same log for a moment, the second write is refused
// (store/segments.ts).

import { setTimeout as pause } from 'node:timers/promises';
import type { Db } from '../db/database.ts';
import { postgresNow } from '../db/database-clock.ts';
import { ChangedMeanwhile } from '../db/guarded.ts';
import type { Engine } from '../engines/engine.ts';
import type { Log } from '../lib/log.ts';
import { parsePosition } from '../lib/log-position.ts';
import type { Loop, Loops } from '../lib/loops.ts';
import type { Regions } from '../regions/regions.ts';
import { Tail, type TailParts } from './log-tail.ts';
import { type LoggedInstance, openStream } from './store/segments.ts';

interface CollectorParts extends CollectionParts {
  loops: Loops;
  regions: Regions;
  /** null: there is no other process. */
  owner: string | null;
}

/** Instances that this process starts are followed at once; the loop finds those that another process started. */
const findEveryMs = 5000;
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
    this.#loop = this.#parts.loops.start({ name: 'logs', intervalMs: findEveryMs, step: () => this.#findInstances() });
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

  /** Begins to follow what should be followed, and ends what another process has taken over. */
  async #findInstances(): Promise<void> {
    const { db, owner, regions } = this.#parts;
    const wanted = new Map((await listInstancesToCollect(db, owner)).map((instance) => [instance.id, instance]));
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

  #collectionOf(instance: LoggedInstance | InstanceToCollect, engine: Engine): Collection {
    const known = this.#collections.get(instance.id);
    if (known && !known.isDone) return known;
    const collection = new Collection(this.#parts, instance, engine);
    this.#collections.set(instance.id, collection);
    return collection;
  }
}

type InstanceToCollect = LoggedInstance & { region: string };

/** `owner`: only those of environments that this process reconciles; null: there is no other process. */
async function listInstancesToCollect(db: Db, owner: string | null): Promise<InstanceToCollect[]> {
  let query = db
    .selectFrom('instance')
    .select(['instance.id', 'instance.project_id', 'instance.environment', 'instance.revision', 'instance.region']);
  if (owner !== null) {
    query = query
      .innerJoin('environment_lease', (join) =>
        join
          .onRef('environment_lease.project_id', '=', 'instance.project_id')
          .onRef('environment_lease.environment', '=', 'instance.environment'),
      )
      .where('environment_lease.owner', '=', owner)
      .where('environment_lease.until', '>=', postgresNow);
  }
  const rows = await query.execute();
  return rows.map(({ id, project_id, environment, revision, region }) => ({
    id,
    key: { projectId: project_id, environment },
    revision,
    region,
  }));
}

// The collection of one instance's log follows it from behind what is stored, and continues after every failure until it is
// stopped or the log ends.

interface CollectionParts extends TailParts {
  log: Log;
  /** Gets what was collected, before it is stored, and whose it is. */
  onLines(accountId: string, instance: LoggedInstance, lines: Buffer): void;
}

async function accountOf(db: Db, projectId: string): Promise<string> {
  const project = db.selectFrom('project').select('account_id').where('id', '=', projectId);
  return (await project.executeTakeFirst())?.account_id ?? '';
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
    const accountId = await accountOf(db, this.instance.key.projectId);
    const position = stream.position === null ? null : parsePosition(stream.position);
    const tail = new Tail(this.#parts, this.instance, stream, position);
    const failing = new AbortController();
    const until = AbortSignal.any([signal, failing.signal]);
    try {
      for await (const lines of this.#engine.follow!(this.instance.id, position, until)) {
        onLines(accountId, this.instance, lines);
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
