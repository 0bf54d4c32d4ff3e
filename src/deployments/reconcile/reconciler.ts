// Looks at environments again and again. Every look begins from what is in the database and what the engine says, so what
// this process remembers only saves time.
import type { Db } from '../../db/database.ts';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import type { EnvironmentKey } from '../../environments/key.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdSource } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import { type Loop, startLoop } from '../../lib/loop.ts';
import type { Seal } from '../../lib/seal.ts';
import type { Regions } from '../../regions/regions.ts';
import { subscribe } from '../../signals/signals.ts';
import type { RouterWatch } from '../../traffic/router-watch.ts';
import { listEnvironmentsInProgress, listEnvironmentsToKeep } from '../queries.ts';
import { Crashes } from '../rules/crashes.ts';
import type { ReconcileContext } from './context.ts';
import { EngineCalls } from './engine-calls.ts';
import { EngineLists } from './engine-lists.ts';
import { HealthWatch } from './health-watch.ts';
import { Images } from './images.ts';
import type { Leases } from './leases.ts';
import { removeOrphans } from './orphans.ts';
import { busyEveryMs, idleEveryMs, type NextLook, reconcile } from './reconcile.ts';
import { Schedule } from './schedule.ts';

interface ReconcilerParts {
  db: Db;
  clock: Clock;
  ids: IdSource;
  log: Log;
  seal: Seal;
  regions: Regions;
  leases: Leases;
  routers: RouterWatch;
}

const tickMs = 250;
/** The safety net: a deployment whose signal got lost is found within this time. */
const searchEveryMs = 1000;
const sweepEveryMs = 10_000;
const maxAtOnce = 16;

export class Reconciler {
  readonly #leases: Leases;
  readonly #context: ReconcileContext;
  readonly #schedule = new Schedule();
  #loop: Loop | null = null;
  #unsubscribe: (() => void)[] = [];

  constructor({ leases, ...parts }: ReconcilerParts) {
    const enqueue = (key: EnvironmentKey) => this.#enqueue(key);
    this.#leases = leases;
    this.#context = {
      ...parts,
      engineLists: new EngineLists(parts.clock),
      engineCalls: new EngineCalls(parts.log, enqueue),
      health: new HealthWatch(enqueue),
      images: new Images(parts, enqueue),
      crashes: new Crashes(),
    };
  }

  start(): void {
    this.#loop = startLoop({
      intervalMs: tickMs,
      step: () => this.#tick(),
      onError: (error) => this.#context.log.error({ err: error, loop: 'reconciler' }, 'a loop failed'),
    });
    const { db } = this.#context;
    this.#unsubscribe = [
      subscribe(db, 'environments', (keys) => {
        for (const key of keys) this.#enqueue(key);
      }),
      subscribe(db, 'removals', () => this.#enqueueSweep()),
    ];
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    await this.#loop?.stop();
    this.#context.health.stop();
    await this.#context.engineCalls.settle();
    await this.#leases.releaseAll();
  }

  /** Look at this environment as soon as possible. */
  #enqueue(key: EnvironmentKey): void {
    this.#context.engineLists.clear();
    this.#schedule.enqueue(key, this.#context.clock.now());
    this.#loop?.wake();
  }

  /** Something was deleted: search for orphans as soon as possible. */
  #enqueueSweep(): void {
    this.#schedule.enqueueSweep();
    this.#loop?.wake();
  }

  async #tick(): Promise<void> {
    const { db, clock } = this.#context;
    const schedule = this.#schedule;
    const nowMs = clock.now();
    if (schedule.takeSweep(nowMs, sweepEveryMs)) await this.#sweep(nowMs);
    if (schedule.takeSearch(nowMs, searchEveryMs)) schedule.discover(await listEnvironmentsInProgress(db), nowMs);
    await Promise.all(schedule.take(clock.now(), maxAtOnce).map((key) => this.#look(key)));
    if (schedule.isAnyDue(clock.now())) this.#loop?.wake();
  }

  async #sweep(nowMs: number): Promise<void> {
    try {
      this.#schedule.discover(await listEnvironmentsToKeep(this.#context.db), nowMs);
      await removeOrphans(this.#context);
    } catch (error) {
      this.#schedule.enqueueSweep();
      throw error;
    }
  }

  async #look(key: EnvironmentKey): Promise<void> {
    const next = await this.#reconcile(key);
    if (next === 'gone') this.#enqueueSweep();
    if (typeof next === 'number') this.#schedule.plan(key, this.#context.clock.now() + next);
    else this.#schedule.remove(key);
  }

  async #reconcile(key: EnvironmentKey): Promise<NextLook> {
    try {
      if (!(await this.#leases.hold(key))) {
        this.#forget(key);
        return idleEveryMs;
      }
      const next = await reconcile(this.#context, key);
      if (typeof next === 'number') return next;
      this.#forget(key);
      await this.#leases.release(key);
      return next;
    } catch (error) {
      if (error instanceof ChangedMeanwhile) return 0;
      const { projectId: project, environment } = key;
      this.#context.log.error({ err: error, project, environment }, 'a look at an environment failed');
      return busyEveryMs;
    }
  }

  /** What is remembered of an environment goes with it, or with its lease. */
  #forget(key: EnvironmentKey): void {
    const { health, images, crashes } = this.#context;
    health.forgetEnvironment(key);
    images.forget(key);
    crashes.forget(key);
  }
}
