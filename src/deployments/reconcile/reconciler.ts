// Runs reconcile passes over environments. Signals and engines say which environment has changed; a search every second
// finds what they missed. Every pass starts from what is in the database and what the engine reports, so what this
// process remembers between passes only saves time.
import type { Quotas } from '../../accounts/quotas.ts';
import type { Db } from '../../db/database.ts';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import { type EnvironmentKey, keyText } from '../../environments/environment-key.ts';
import { type Clock, deadlineOf, monotonicOf } from '../../lib/clock.ts';
import type { IdSource } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import type { Loop, Loops } from '../../lib/loops.ts';
import type { Seal } from '../../lib/seal.ts';
import type { RegionChange, RegionState, Regions } from '../../regions/regions.ts';
import type { RegistryLogins } from '../../registries/registry-logins.ts';
import { subscribe } from '../../signals/signals.ts';
import type { RouterWatch } from '../../traffic/router-watch.ts';
import {
  findRegions,
  listEnvironmentsIn,
  listEnvironmentsInProgress,
  listEnvironmentsToKeep,
} from '../deployment-queries.ts';
import { freePorts, type PortRange } from '../ports.ts';
import { Crashes } from '../rules/crashes.ts';
import { CalmEnvironments } from './calm-environments.ts';
import { EngineCalls } from './engine-calls.ts';
import { EngineLists, unrouteMoved } from './engine-lists.ts';
import type { EnvironmentLeases } from './environment-leases.ts';
import { HealthWatch, type Probe, probe } from './health-checks.ts';
import { ImagePulls } from './image-pulls.ts';
import { Orphans } from './orphans.ts';
import type { ReconcileContext } from './reconcile-context.ts';
import { askRegion, busyEveryMs, idleEveryMs, type NextPass, reconcile } from './reconcile-pass.ts';
import { RegionQueues, Schedule } from './schedule.ts';

interface ReconcilerParts {
  db: Db;
  clock: Clock;
  ids: IdSource;
  log: Log;
  loops: Loops;
  seal: Seal;
  regions: Regions;
  logins: RegistryLogins;
  leases: EnvironmentLeases;
  pullTimeoutS: number;
  instancePorts: PortRange;
  quotas?: Quotas;
  routers: RouterWatch;
  followLogs?: ReconcileContext['followLogs'];
  takeLogs?: ReconcileContext['takeLogs'];
  random: () => number;
  /** Whether the account may use images that are on the machine of an engine and were not pulled for it. */
  mayUseLocal?(accountId: string): Promise<boolean>;
  onDiskFull?(region: string): void;
  /** Why the registry of an image may not be asked; null: it may. */
  refuseRegistry?(image: string): Promise<string | null>;
  /** How an instance's health is checked. */
  probe?: Probe;
}

const tickMs = 250;
/** The safety net: a deployment whose signal got lost is found within this time. */
const searchEveryMs = 1000;
/** Environments that were deleted wait in a queue of their own. */
const noRegion = '';
const sweepEveryMs = 10_000;
/** The safety net of those in which nothing changes. Passes at the same time share one list of what the engine runs. */
const calmEveryMs = 600_000;
const calmStepMs = 10_000;
const maxTaken = 64;

export class Reconciler {
  readonly #loops: Loops;
  readonly #leases: EnvironmentLeases;
  readonly #context: Omit<ReconcileContext, 'lease'>;
  /** The schedule does not depend on the time of day, which may be set back. */
  readonly #monotonic: Clock;
  readonly #schedule = new Schedule();
  readonly #queues = new RegionQueues();
  readonly #sweeping = new Set<string>();
  readonly #orphans = new Orphans();
  readonly #calm: CalmEnvironments;
  readonly #random: () => number;
  /** Environments whose deployments are in force at some routers and not yet at all. */
  readonly #awaitRouters = new Map<string, EnvironmentKey>();
  /** How often routers have said that they have another table in force. */
  #routersMoved = 0;
  #loop: Loop | null = null;
  #unsubscribe: (() => void)[] = [];

  constructor({ loops, leases, random, ...parts }: ReconcilerParts) {
    const enqueue = (key: EnvironmentKey) => this.#enqueue(key);
    this.#loops = loops;
    this.#leases = leases;
    this.#monotonic = monotonicOf(parts.clock);
    this.#context = {
      ...parts,
      deadlineClock: deadlineOf(parts.clock),
      engineLists: new EngineLists(this.#monotonic, unrouteMoved(parts)),
      engineCalls: new EngineCalls(parts.log, enqueue),
      health: new HealthWatch(this.#monotonic, enqueue, parts.probe ?? probe, (reason) =>
        parts.log.error({ reason }, 'health checks do not work: instances count as they did before'),
      ),
      images: new ImagePulls({ ...parts, clock: this.#monotonic, random }, enqueue),
      crashes: new Crashes(),
    };
    this.#calm = new CalmEnvironments({ ...this.#context, leases });
    this.#random = random;
  }

  start(): void {
    this.#loop = this.#loops.start({ name: 'reconciler', intervalMs: tickMs, step: () => this.#tick() });
    const { db, regions } = this.#context;
    this.#unsubscribe = [
      regions.watch((change) => void this.#onRegionChange(change)),
      subscribe(db, 'environments', (keys) => {
        for (const key of keys) this.#enqueue(key);
      }),
      subscribe(db, 'removals', () => this.#enqueueSweep()),
      subscribe(db, 'routers', () => this.#onRouters()),
    ];
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    await this.#loop?.stop();
    await this.#queues.stop();
    this.#context.health.stop();
    await this.#context.engineCalls.settle();
    await this.#leases.releaseAll();
  }

  /** Reconcile this environment as soon as possible. */
  #enqueue(key: EnvironmentKey): void {
    this.#context.engineLists.clear();
    this.#schedule.enqueue(key, this.#monotonic.now());
    this.#loop?.wake();
  }

  #onRouters(): void {
    this.#routersMoved++;
    const keys = [...this.#awaitRouters.values()];
    this.#awaitRouters.clear();
    for (const key of keys) this.#schedule.enqueue(key, this.#monotonic.now());
    if (keys.length > 0) this.#loop?.wake();
  }

  /** Something was deleted: search for orphans as soon as possible. */
  #enqueueSweep(): void {
    this.#schedule.enqueueSweep();
    this.#loop?.wake();
  }

  async #onRegionChange({ region, environment }: RegionChange): Promise<void> {
    if (environment) return this.#enqueue(environment);
    const { db, log, engineLists } = this.#context;
    try {
      const keys = await listEnvironmentsIn(db, region);
      engineLists.clear();
      this.#schedule.enqueueScheduled(keys, this.#monotonic.now());
      this.#loop?.wake();
    } catch (error) {
      log.warn({ err: error, region }, 'the environments of a region that changed wait for their next pass');
    }
  }

  async #tick(): Promise<void> {
    const { db } = this.#context;
    const schedule = this.#schedule;
    const nowMs = this.#monotonic.now();
    if (schedule.takeSweep(nowMs, sweepEveryMs)) await this.#sweep(nowMs);
    if (schedule.takeSearch(nowMs, searchEveryMs)) {
      const keys = await listEnvironmentsInProgress(db);
      schedule.discover(keys, nowMs);
      for (const key of keys) if (this.#calm.has(key)) schedule.enqueue(key, nowMs);
    }
    await this.#dispatch(schedule.take(this.#monotonic.now(), maxTaken));
    if (schedule.isAnyDue(this.#monotonic.now())) this.#loop?.wake();
  }

  /** Gives each to the workers of its region. Each pass plans the next one. */
  async #dispatch(keys: EnvironmentKey[]): Promise<void> {
    try {
      const regions = await findRegions(this.#context.db, keys);
      for (const key of keys) this.#queues.add(regions.get(keyText(key)) ?? noRegion, () => this.#runPass(key));
    } catch (error) {
      for (const key of keys) this.#schedule.plan(key, this.#monotonic.now() + busyEveryMs);
      throw error;
    }
  }

  async #sweep(nowMs: number): Promise<void> {
    const { db, routers, deadlineClock } = this.#context;
    try {
      const keys = await listEnvironmentsToKeep(db);
      this.#schedule.discover(keys, nowMs);
      this.#schedule.reduceTo(keys, nowMs);
      await routers.sweep();
      await freePorts(db, routers, deadlineClock.now());
      for (const key of await this.#calm.renew(nowMs)) this.#schedule.enqueue(key, nowMs);
    } catch (error) {
      this.#schedule.enqueueSweep();
      throw error;
    }
    for (const region of this.#context.regions.all()) {
      if (this.#sweeping.has(region.name)) continue;
      this.#sweeping.add(region.name);
      this.#queues.add(region.name, () => this.#sweepRegion(region));
    }
  }

  async #sweepRegion(region: RegionState): Promise<void> {
    try {
      const left = await this.#orphans.remove(this.#context, region);
      if (left > 0) this.#schedule.enqueueSweep(this.#monotonic.now() + searchEveryMs);
      if (this.#calm.hasAnyIn(region.name)) await this.#compareCalm(region.name);
    } catch (error) {
      this.#context.log.warn({ err: error, region: region.name }, 'a search for orphans failed');
    } finally {
      this.#sweeping.delete(region.name);
    }
  }

  async #compareCalm(name: string): Promise<void> {
    const region = await askRegion(this.#context.regions, this.#context.engineLists, name);
    const changed = region ? this.#calm.changedIn(region) : [];
    for (const key of changed) this.#schedule.enqueue(key, this.#monotonic.now());
    if (changed.length > 0) this.#loop?.wake();
  }

  async #runPass(key: EnvironmentKey): Promise<void> {
    this.#calm.forget(key);
    this.#awaitRouters.delete(keyText(key));
    const moved = this.#routersMoved;
    const next = await this.#reconcile(key);
    const nowMs = this.#monotonic.now();
    if (next === 'gone') this.#enqueueSweep();
    if (typeof next === 'number') this.#schedule.plan(key, nowMs + next);
    else if (typeof next === 'object' && 'routers' in next) {
      // The pass may have read their versions before they moved.
      const hasMoved = moved !== this.#routersMoved;
      if (!hasMoved) this.#awaitRouters.set(keyText(key), key);
      this.#schedule.plan(key, hasMoved ? nowMs : nowMs + next.routers);
    } else if (typeof next === 'object') {
      this.#calm.note(next.calm);
      this.#schedule.plan(key, this.#calmPassAt(nowMs));
    } else this.#schedule.remove(key);
    if (this.#schedule.isDue(key, nowMs)) this.#loop?.wake();
  }

  async #reconcile(key: EnvironmentKey): Promise<NextPass> {
    try {
      const lease = await this.#leases.hold(key);
      if (!lease) {
        this.#forget(key);
        return idleEveryMs;
      }
      const next = await reconcile({ ...this.#context, lease }, key);
      if (typeof next !== 'string') return next;
      this.#forget(key);
      await this.#leases.release(key);
      return next;
    } catch (error) {
      if (error instanceof ChangedMeanwhile) return 0;
      const { projectId: project, environment } = key;
      this.#context.log.error({ err: error, project, environment }, 'a reconcile pass failed');
      return busyEveryMs;
    }
  }

  #calmPassAt(nowMs: number): number {
    const at = nowMs + calmEveryMs * (0.75 + this.#random() / 2);
    return Math.ceil(at / calmStepMs) * calmStepMs;
  }

  /** What is remembered of an environment goes with it, or with its lease. */
  #forget(key: EnvironmentKey): void {
    const { health, images, crashes } = this.#context;
    health.watch(key, []);
    images.forget(key);
    crashes.forget(key);
  }
}
