// Looks after environments: load → observe → decide → save, then act; again and again. Level-triggered: every look
// begins from what is in the database and what the engine says, so a crash at any point only means that the next look
// comes later, from this process or another.
import { findCanaryAlert } from '../../alerts/queries.ts';
import type { HealthCheck } from '../../contract/environments.ts';
import type { Db } from '../../db/database.ts';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import type { EngineInstance } from '../../engines/engine.ts';
import { openSealedVariables } from '../../environments/change.ts';
import type { EnvironmentKey } from '../../environments/key.ts';
import { type EnvironmentRow, findEnvironment } from '../../environments/queries.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdSource } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import { type Loop, startLoop } from '../../lib/loop.ts';
import type { Seal } from '../../lib/seal.ts';
import type { RegionState, Regions } from '../../regions/regions.ts';
import { compareTraffic } from '../present.ts';
import {
  type DeploymentRow,
  findActiveRevision,
  findInProgress,
  findRevision,
  listEnvironmentsInProgress,
  listEnvironmentsToKeep,
  type RevisionRow,
} from '../queries.ts';
import { decide, type Failure } from '../rules/rollout.ts';
import { HealthWatch } from './health-watch.ts';
import { Images } from './images.ts';
import { type InstanceRow, listInstances } from './instances.ts';
import { Keeper, revisionKey, type Wanted } from './keeper.ts';
import type { Leases } from './leases.ts';
import { removeStrangers } from './orphans.ts';
import { saveStep } from './save.ts';
import { saveShares } from './shares.ts';
import { countInstances, desiredFor, observedOf, percentsOf, policyOf, rolloutOf } from './situation.ts';

export interface ReconcilerParts {
  db: Db;
  clock: Clock;
  ids: IdSource;
  log: Log;
  seal: Seal;
  regions: Regions;
  leases: Leases;
  settleMs: number;
  /** Routes may have changed. */
  onRouting(): void;
}

const tickMs = 250;
const busyEveryMs = 300;
const idleEveryMs = 10_000;
/** New work that another process accepted is found within this time. */
const searchEveryMs = 1000;
const sweepEveryMs = 10_000;
const maxAtOnce = 16;

export class Reconciler {
  readonly #parts: ReconcilerParts;
  readonly #keeper: Keeper;
  readonly #health: HealthWatch;
  readonly #images: Images;
  readonly #lists = new Map<string, { at: number; list: Promise<Map<string, EngineInstance>> }>();
  /** Environments and when to look at them next. */
  readonly #due = new Map<string, { key: EnvironmentKey; at: number }>();
  readonly #instanceKeys = new Map<string, EnvironmentKey>();
  #searchedAt = 0;
  #sweptAt = 0;
  #loop: Loop | null = null;

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
    this.#health = new HealthWatch((instance) => {
      const key = this.#instanceKeys.get(instance);
      if (key) this.kick(key);
    });
    this.#images = new Images(parts, (key) => this.kick(key));
    this.#keeper = new Keeper({ ...parts, health: this.#health, onChange: (key) => this.kick(key) });
  }

  start(): void {
    this.#loop = startLoop({
      intervalMs: tickMs,
      step: () => this.#tick(),
      onError: (error) => this.#parts.log.error({ err: error, loop: 'reconciler' }, 'a loop failed'),
    });
  }

  async stop(): Promise<void> {
    await this.#loop?.stop();
    this.#health.stop();
    await this.#keeper.settle();
    await this.#parts.leases.releaseAll();
  }

  /** Look at this environment as soon as possible. */
  kick(key: EnvironmentKey): void {
    this.#lists.clear();
    this.#due.set(nameOf(key), { key, at: 0 });
    this.#loop?.wake();
  }

  /** Something was deleted: look for what belongs to nobody any more. */
  kickSweep(): void {
    this.#sweptAt = 0;
    this.#loop?.wake();
  }

  async #tick(): Promise<void> {
    const nowMs = this.#parts.clock.now();
    if (nowMs - this.#searchedAt >= searchEveryMs) await this.#search(nowMs);
    if (nowMs - this.#sweptAt >= sweepEveryMs) {
      this.#sweptAt = nowMs;
      await removeStrangers(this.#parts);
    }
    const due = [...this.#due.values()].filter(({ at }) => at <= nowMs);
    for (let i = 0; i < due.length; i += maxAtOnce) {
      await Promise.all(due.slice(i, i + maxAtOnce).map(({ key }) => this.#lookSafely(key)));
    }
  }

  async #search(nowMs: number): Promise<void> {
    const { db } = this.#parts;
    const all = this.#searchedAt === 0 || nowMs - this.#sweptAt >= sweepEveryMs;
    const keys = all ? await listEnvironmentsToKeep(db) : await listEnvironmentsInProgress(db);
    for (const key of keys) if (!this.#due.has(nameOf(key))) this.#due.set(nameOf(key), { key, at: 0 });
    this.#searchedAt = nowMs;
  }

  async #lookSafely(key: EnvironmentKey): Promise<void> {
    const name = nameOf(key);
    const { clock, log, leases } = this.#parts;
    this.#due.set(name, { key, at: clock.now() + busyEveryMs });
    try {
      if (!(await leases.hold(key))) {
        this.#due.set(name, { key, at: clock.now() + idleEveryMs });
        return;
      }
      const nextMs = await this.#look(key);
      const planned = this.#due.get(name);
      if (nextMs === null) this.#due.delete(name);
      else if (planned && planned.at !== 0) this.#due.set(name, { key, at: clock.now() + nextMs });
    } catch (error) {
      if (error instanceof ChangedMeanwhile) this.#due.set(name, { key, at: 0 });
      else
        log.error(
          { err: error, project: key.projectId, environment: key.environment },
          'an environment could not be looked after',
        );
    }
  }

  /** One look. Gives when to look again; null: there is nothing to look after. */
  async #look(key: EnvironmentKey): Promise<number | null> {
    const { db, regions } = this.#parts;
    const environment = await findEnvironment(db, key.projectId, key.environment);
    if (!environment) {
      this.kickSweep();
      return null;
    }
    const deployment = await findInProgress(db, key);
    const active = await findActiveRevision(db, key);
    const region = regions.find(environment.region);
    if (deployment) return this.#rollOut(environment, deployment, active, region);
    const wanted = active ? [this.#wanted(environment, active, environment.replicas)] : [];
    const rows = region?.available ? await this.#keep(environment, region, wanted) : await listInstances(db, key);
    if (!active && rows.length === 0) return null;
    const calm = rows.every((row) => row.state === 'healthy') && rows.length === (active ? environment.replicas : 0);
    return calm ? idleEveryMs : busyEveryMs;
  }

  async #rollOut(
    environment: EnvironmentRow,
    deployment: DeploymentRow,
    active: RevisionRow | undefined,
    region: RegionState | undefined,
  ): Promise<number> {
    const { db, clock } = this.#parts;
    const key = keyOf(deployment);
    const fresh = (await findRevision(db, key, deployment.revision))!;
    const regionAvailable = region?.available === true;
    const desired = desiredFor(
      deployment,
      environment.replicas,
      countInstances(await listInstances(db, key), deployment),
    );
    if (await saveShares(db, deployment, fresh, active, desired.freshPercent)) this.#parts.onRouting();
    let rows = await listInstances(db, key);
    if (regionAvailable) {
      const wanted = [this.#wanted(environment, fresh, desired.fresh)];
      if (active) wanted.push(this.#wanted(environment, active, desired.previous));
      rows = await this.#keep(environment, region, wanted);
    }
    const counts = countInstances(rows, deployment);
    const policy = policyOf(environment);
    // Before the traffic, which is then at least as new as what the alert was about.
    const alert = deployment.state === 'canary' ? await findCanaryAlert(db, deployment) : null;
    const image = deployment.state === 'preparing' ? this.#images.look(deployment, fresh, region) : null;
    const step = decide(
      rolloutOf(deployment, policy),
      observedOf(desiredFor(deployment, environment.replicas, counts), counts, {
        regionAvailable,
        image,
        trouble: this.#troubleOf(key, deployment, rows),
        traffic: await compareTraffic(db, deployment),
        alert,
      }),
      policy,
      clock.now(),
    );
    if (!step) return busyEveryMs;
    const logTail = step.failure ? await this.#logTail(key, deployment, rows, region) : [];
    await db
      .transaction()
      .execute((tx) =>
        saveStep(tx, this.#parts, environment, deployment, step, percentsOf(deployment, policy), logTail),
      );
    if (step.to !== 'preparing') this.#images.forget(deployment);
    this.#parts.onRouting();
    return 0;
  }

  async #keep(environment: EnvironmentRow, region: RegionState, wanted: Wanted[]): Promise<InstanceRow[]> {
    const place = {
      key: { projectId: environment.project_id, environment: environment.name },
      region: region.name,
      engine: region.engine,
      health: JSON.parse(environment.health_check) as HealthCheck,
      drainS: environment.drain_s,
    };
    const rows = await this.#keeper.keep(place, await this.#list(region), wanted);
    for (const row of rows) this.#instanceKeys.set(row.id, place.key);
    this.#parts.onRouting();
    return rows;
  }

  /** Environments that are looked at in the same moment share one question to the engine. */
  #list(region: RegionState): Promise<Map<string, EngineInstance>> {
    const nowMs = this.#parts.clock.now();
    const known = this.#lists.get(region.name);
    if (known && nowMs - known.at < busyEveryMs / 2) return known.list;
    const list = region.engine.list().then((all) => new Map(all.map((instance) => [instance.id, instance])));
    this.#lists.set(region.name, { at: nowMs, list });
    list.catch(() => this.#lists.delete(region.name));
    return list;
  }

  #wanted(environment: EnvironmentRow, revision: RevisionRow, instances: number): Wanted {
    return {
      number: revision.number,
      instances,
      spec:
        revision.digest === null
          ? null
          : {
              project: revision.project_id,
              environment: revision.environment,
              revision: revision.number,
              image: revision.image,
              digest: revision.digest,
              port: revision.port,
              variables: openSealedVariables(revision.variables_sealed, environment, this.#parts.seal),
            },
    };
  }

  #troubleOf(key: EnvironmentKey, deployment: DeploymentRow, rows: InstanceRow[]): Failure | null {
    const crashed = this.#keeper.crashes.troubleOf(revisionKey(key, deployment.revision));
    if (crashed) return crashed;
    for (const row of rows.filter(({ revision }) => revision === deployment.revision)) {
      const last = this.#health.lastOf(row.id);
      if (last && !last.ok && last.fault === 'bad_answer')
        return { code: 'health_check_failed', message: last.message };
    }
    return null;
  }

  async #logTail(
    key: EnvironmentKey,
    deployment: DeploymentRow,
    rows: InstanceRow[],
    region: RegionState | undefined,
  ): Promise<string[]> {
    const kept = this.#keeper.crashes.logTailOf(revisionKey(key, deployment.revision));
    const row = rows.find(({ revision }) => revision === deployment.revision);
    if (kept.length > 0 || !row || !region?.available) return kept;
    const lines = await region.engine.logs(row.id, { tail: 50 }).catch(() => []);
    return lines.map(({ text }) => text.slice(0, 2000));
  }
}

const nameOf = ({ projectId, environment }: EnvironmentKey): string => `${projectId} ${environment}`;
const keyOf = (row: DeploymentRow): EnvironmentKey => ({ projectId: row.project_id, environment: row.environment });
