// One reconcile pass over an environment: observe → decide → save → act.
//
// A pass that decides on a step only saves it. The next pass follows at once, reads what was saved and acts on it, so
// nothing is started, drained or given traffic for a state that is not in the database. A crash at any point only means
// that the next pass comes later, from this process or another. For the same reason a step that reports how things are
// ("It serves all traffic.") is decided by the pass after the one that made them so.
import { findCanaryAlert } from '../../alerts/alert-queries.ts';
import { revisionId } from '../../contract/references.ts';
import type { Db } from '../../db/database.ts';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import { EngineError, type PreparedImage } from '../../engines/engine.ts';
import type { EnvironmentKey } from '../../environments/environment-key.ts';
import {
  canaryPolicyOf,
  type EnvironmentRow,
  findEnvironment,
  setHealth,
} from '../../environments/environment-queries.ts';
import { healthCheckOf } from '../../environments/revision-settings.ts';
import type { Regions } from '../../regions/regions.ts';
import type { RouterWatch } from '../../traffic/router-watch.ts';
import { findRoutingVersion } from '../../traffic/traffic-queries.ts';
import { measureStep } from '../canary-traffic.ts';
import {
  type DeploymentRow,
  findInProgress,
  listCurrentRevisions,
  listTimelines,
  type RevisionRow,
  type TimelineRow,
} from '../deployment-queries.ts';
import { findLastEnd, type InstanceRow, listInstances, listSets, publishInstanceChange } from '../instance-queries.ts';
import { Measured } from '../rules/analysis.ts';
import type { Crashes } from '../rules/crashes.ts';
import { countInstances, type Desired, desiredFor, percentsOf, policyOf, rolloutOf } from '../rules/desired.ts';
import { asksForEnds, type EnvironmentHealth, healthOf, type Serving } from '../rules/environment-health.ts';
import { notHealthy } from '../rules/instance-failures.ts';
import { decide, type Failure, type Observed } from '../rules/rollout.ts';
import { saveStep } from '../save-step.ts';
import { moveTraffic } from '../traffic-shares.ts';
import { isCalm } from './calm-environments.ts';
import { clampRolloutTimes, continueBake } from './clamp-times.ts';
import { readLogTail } from './engine-calls.ts';
import type { EngineLists } from './engine-lists.ts';
import type { EnvironmentLease } from './environment-leases.ts';
import { type DesiredSet, keepInstances } from './keeper.ts';
import type { Observation, ObservedRegion, Reachable, ReconcileContext } from './reconcile-context.ts';
import { refreshInstances, whyNotHealthy } from './refresh-instances.ts';

export const busyEveryMs = 300;
export const idleEveryMs = 10_000;

/**
 * Milliseconds until the next pass; routers: that many, or once a router has another table in force; idle: none until
 * something changes; gone: the environment was deleted.
 */
export type NextPass = number | { routers: number } | 'idle' | 'gone' | { calm: Reachable };

export async function reconcile(context: ReconcileContext, key: EnvironmentKey): Promise<NextPass> {
  const seen = await observe(context, key);
  if (!seen) return 'gone';
  await saveHealth(context.db, context.lease, seen, context.deadlineClock.now());
  if (!seen.rollout) return keepActive(context, seen);

  const { deployment, target } = seen.rollout;
  const { environment, active, instances } = seen;
  const policy = { ...policyOf(environment, target), pullTimeoutS: context.pullTimeoutS };
  if (await clampRolloutTimes(context, deployment, policy)) return 0;
  if (await continueBake(context, deployment)) return 0;
  const desired = desiredFor(deployment, environment.replicas, countInstances(instances, deployment));
  const observed = await observeRollout(context, seen, seen.rollout, desired);
  const step = decide(rolloutOf(deployment, policy), observed, policy, context.deadlineClock.now());
  if (step) {
    const logTail = step.failure ? await failureLog(context.crashes, seen, deployment) : [];
    await context.lease.write((tx) =>
      saveStep(tx, context, environment, deployment, step, percentsOf(deployment, policy), { logTail, instances }),
    );
    if (step.to !== 'preparing') context.images.forget(key);
    return 0;
  }

  const moved = await moveTraffic(context.lease.write, deployment, target, active, desired.targetPercent, instances);
  const sets: DesiredSet[] = [{ revision: target, instances: desired.target }];
  if (active) sets.push({ revision: active, instances: desired.previous });
  const changed = await keepInstances(context, seen, sets, deployment.replaced_instance);
  if (moved || changed) return 0;
  const behind = observed.routersBehind;
  return behind ? { routers: busyEveryMs } : busyEveryMs;
}

async function keepActive(context: ReconcileContext, seen: Observation): Promise<NextPass> {
  const { active, environment, instances, sets } = seen;
  const replicas = active ? environment.replicas : 0;
  const changed = await keepInstances(context, seen, active ? [{ revision: active, instances: replicas }] : []);
  if (!active && instances.length === 0 && sets.length === 0) return 'idle';
  if (!changed && isCalm(seen)) return { calm: seen };
  const isSettled = !changed && instances.length === replicas && instances.every(({ state }) => state === 'healthy');
  return isSettled ? idleEveryMs : busyEveryMs;
}

/** The last lines of an instance that failed; if none was kept, those of one that still runs. */
async function failureLog(
  crashes: Crashes,
  { key, instances, region }: Observation,
  { revision }: DeploymentRow,
): Promise<string[]> {
  const kept = crashes.logTailOf(key, revision);
  const instance = instances.find((row) => row.revision === revision);
  return kept.length > 0 || !instance || !region ? kept : readLogTail(region.engine, instance.id);
}

/**
 * Reads the environment's rows once and lists the engine's instances once. What only some states of a rollout need is
 * read by observeRollout(), in those states. null: there is no such environment.
 */
async function observe(context: ReconcileContext, key: EnvironmentKey): Promise<Observation | null> {
  const { db, regions, engineCalls, engineLists, health } = context;
  // Before the rows are read: a call that ends during the pass changes a row that the pass has already read.
  const busy = engineCalls.busy();
  const [environment, deployment, revisions, rows, sets] = await Promise.all([
    findEnvironment(db, key.projectId, key.environment),
    findInProgress(db, key),
    listCurrentRevisions(db, key),
    listInstances(db, key),
    listSets(db, key),
  ]);
  if (!environment) return null;
  const rollout = deployment ? { deployment, target: targetOf(deployment, revisions) } : null;
  const active = revisions.find(({ state }) => state === 'active') ?? null;
  const region = await askRegion(regions, engineLists, environment.region);
  if (!region) {
    health.watch(key, []);
    return { key, environment, active, rollout, instances: rows, sets, region: null, busy };
  }
  const healthChecks = new Map(revisions.map((revision) => [revision.number, healthCheckOf(revision)]));
  const instances = await refreshInstances(context, { key, healthChecks, busy, ...region }, rows);
  return { key, environment, active, rollout, instances, sets, region, busy };
}

/** null: the region does not answer. */
export async function askRegion(regions: Regions, lists: EngineLists, name: string): Promise<ObservedRegion | null> {
  const region = regions.find(name);
  if (!region?.available) return null;
  try {
    return { name, engine: region.engine, running: await lists.of(region) };
  } catch (error) {
    if (!(error instanceof EngineError) || error.fault !== 'unavailable') throw error;
    void regions.check(name);
    return null;
  }
}

function targetOf(deployment: DeploymentRow, revisions: RevisionRow[]): RevisionRow {
  const target = revisions.find(({ number }) => number === deployment.revision);
  // The deployment ended, or its project was deleted, between two of the reads.
  if (!target) throw new ChangedMeanwhile();
  return target;
}

/** The facts from which the rules decide the next step of a rollout. */
async function observeRollout(
  context: ReconcileContext,
  seen: Observation,
  { deployment, target }: NonNullable<Observation['rollout']>,
  desired: Desired,
): Promise<Observed> {
  const { db, regions, routers, images } = context;
  const known =
    deployment.state === 'preparing' ? images.check(deployment, target, regions.find(seen.environment.region)) : null;
  const image = known && 'digest' in known ? withPort(known, seen.environment, deployment) : known;
  const counts = countInstances(seen.instances, deployment);
  const isCanary = deployment.state === 'canary';
  // Read before the traffic, which is then at least as new as the measurements behind the alert.
  const alert = isCanary ? await findCanaryAlert(db, deployment) : null;
  const timeline =
    (image && 'trouble' in image) || deployment.state === 'starting' ? await timelineOf(db, deployment) : [];
  const isUnreported = timeline.filter(({ state }) => state === deployment.state).length <= 1;
  return {
    regionAvailable: seen.region !== null,
    image,
    lastMessage: timeline.at(-1)?.message ?? null,
    isUnreported,
    target: {
      wanted: desired.target,
      healthy: counts.targetHealthy,
      existing: counts.targetExisting,
      percent: target.traffic_percent,
    },
    previous: { wanted: desired.previous, healthy: counts.previousHealthy },
    routersBehind: deployment.state === 'promoting' ? await routersBehind(db, routers, seen) : null,
    trouble: await troubleOf(context, seen, deployment, isUnreported),
    traffic: isCanary
      ? await measureStep(db, context.clock, deployment, canaryPolicyOf(seen.environment))
      : new Measured(),
    alert,
  };
}

async function timelineOf(db: Db, { id }: DeploymentRow): Promise<TimelineRow[]> {
  return (await listTimelines(db, [id])).get(id)!;
}

/** Where the environment sets no port, the only port that the image exposes is used. A rollback keeps its own. */
function withPort({ digest, exposed = [] }: PreparedImage, { port_set }: EnvironmentRow, { kind }: DeploymentRow) {
  const [port, ...others] = exposed;
  const decides = port !== undefined && others.length === 0 && port_set === 0 && kind !== 'rollback';
  return { digest, ...(decides && { port }) };
}

async function routersBehind(
  db: Db,
  routers: RouterWatch,
  { key, instances }: Observation,
): Promise<Observed['routersBehind']> {
  const version = await findRoutingVersion(db, key);
  if ((await routers.leastInForce()) >= version) return null;
  return { since: Math.max(...instances.map(({ state_since }) => state_since)) };
}

/** How long an instance may listen on no port before the timeline says so. */
const tellAfterMs = 10_000;

async function troubleOf(
  context: ReconcileContext,
  { key, instances, region }: Observation,
  { revision, state, deadline_at }: DeploymentRow,
  isUnreported: boolean,
): Promise<Failure | null> {
  const { db, crashes, health, deadlineClock } = context;
  const crashed = crashes.troubleOf(key, revision);
  if (crashed) return crashed;
  const own = instances.filter((row) => row.revision === revision);
  for (const { id } of own) {
    const found = region?.running.get(id);
    // It may resolve itself, and the start waits for that; otherwise the start fails with it.
    const failure = found?.state === 'created' && state === 'starting' ? found.failure : undefined;
    if (failure && failure.code !== 'start_failed') return failure;
    const check = health.lastCheckOf(id)?.result;
    if (check && !check.ok && check.fault === 'bad_answer') return notHealthy(check, null, null);
  }
  const isLate = deadlineClock.now() >= (deadline_at ?? Number.POSITIVE_INFINITY);
  if (state !== 'starting' || !region || !(isLate || isUnreported)) return null;
  const isOverdue = ({ started_at }: InstanceRow) =>
    deadlineClock.now() - (started_at ?? deadlineClock.now()) >= tellAfterMs;
  const waiting = own.find((row) => row.state === 'starting' && (isLate || isOverdue(row)));
  return waiting ? whyNotHealthy(db, region.engine, waiting, health.lastCheckOf(waiting.id)) : null;
}

const maxReason = 2000;

/**
 * Writes the environment's health when it has changed. So the row knows since when, and lists of environments and
 * projects show the health without counting instances.
 */
async function saveHealth(db: Db, lease: EnvironmentLease, seen: Observation, nowMs: number): Promise<void> {
  const { environment, key } = seen;
  const { state, reason } = await judgeHealth(db, seen, nowMs);
  const health_reason = reason?.slice(0, maxReason) ?? null;
  const hasTurned = state !== environment.health_state;
  if (!hasTurned && health_reason === environment.health_reason) return;
  const health_since = hasTurned ? nowMs : environment.health_since;
  await lease.write(async (tx) => {
    await setHealth(tx, environment, { health_state: state, health_since, health_reason });
    await publishInstanceChange(tx, key);
  });
}

async function judgeHealth(db: Db, seen: Observation, nowMs: number): Promise<EnvironmentHealth> {
  const { active, key } = seen;
  const serving = servingOf(seen);
  const health = healthOf(serving, nowMs);
  if (!active || !asksForEnds(health)) return health;
  return healthOf({ ...serving, lastEnd: (await findLastEnd(db, key, active.number)) ?? null }, nowMs);
}

/** The target revision of a rollout counts as soon as it gets requests. */
function servingOf({ active, rollout, environment, instances }: Observation): Serving {
  const target = rollout?.target;
  const isServing = (revision: number) =>
    revision === active?.number || (revision === target?.number && target.traffic_percent > 0);
  return {
    active: active && revisionId(active.number),
    replicas: environment.replicas,
    instances: instances.filter((row) => isServing(row.revision) && row.state !== 'draining'),
    lastEnd: null,
  };
}
