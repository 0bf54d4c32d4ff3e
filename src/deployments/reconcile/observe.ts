// What a look sees: one read of the environment's rows, one list from the engine. What only some states of a rollout need
// is read in those states alone.
import { findCanaryAlert } from '../../alerts/queries.ts';
import type { Db } from '../../db/database.ts';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import { EngineError, type PreparedImage } from '../../engines/engine.ts';
import type { EnvironmentKey } from '../../environments/key.ts';
import { type EnvironmentRow, findEnvironment } from '../../environments/queries.ts';
import { healthCheckOf } from '../../environments/revision-settings.ts';
import type { RegionState } from '../../regions/regions.ts';
import { findRoutingVersion } from '../../traffic/queries.ts';
import { compareTraffic } from '../canary-traffic.ts';
import { listSets } from '../instance-sets.ts';
import { type InstanceRow, listInstances } from '../instances.ts';
import {
  type DeploymentRow,
  findInProgress,
  listCurrentRevisions,
  listTimelines,
  type RevisionRow,
  type TimelineRow,
} from '../queries.ts';
import { type Comparison, nothingAnswered } from '../rules/analysis.ts';
import type { Desired } from '../rules/desired.ts';
import { notHealthy } from '../rules/not-healthy.ts';
import type { Observed } from '../rules/rollout.ts';
import { countInstances } from '../rules/situation.ts';
import type { Failure } from '../rules/steps.ts';
import type { Observation, ObservedRegion, ReconcileContext } from './context.ts';
import { whyNotHealthy } from './instances/why-not-healthy.ts';
import { refreshInstances } from './refresh.ts';

/** null: there is no such environment. */
export async function observe(context: ReconcileContext, key: EnvironmentKey): Promise<Observation | null> {
  const { db, regions, engineCalls, health } = context;
  // Before the rows are read: a call that ends during the look has changed a row that the look still has as it was.
  const busy = engineCalls.busy();
  const [environment, deployment, revisions, rows, sets] = await Promise.all([
    findEnvironment(db, key.projectId, key.environment),
    findInProgress(db, key),
    listCurrentRevisions(db, key),
    listInstances(db, key),
    listSets(db, key),
  ]);
  if (!environment) return null;
  const rollout = deployment ? { deployment, fresh: freshOf(deployment, revisions) } : null;
  const active = revisions.find(({ state }) => state === 'active') ?? null;
  const region = await askRegion(context, regions.find(environment.region));
  if (!region) {
    health.watch(key, []);
    return { key, environment, active, rollout, instances: rows, sets, region: null, busy };
  }
  const healthChecks = new Map(revisions.map((revision) => [revision.number, healthCheckOf(revision)]));
  const instances = await refreshInstances(context, { key, healthChecks, busy, ...region }, rows);
  return { key, environment, active, rollout, instances, sets, region, busy };
}

/** null: the region does not answer. */
async function askRegion(
  { regions, engineLists }: ReconcileContext,
  region: RegionState | undefined,
): Promise<ObservedRegion | null> {
  if (!region?.available) return null;
  const { name, engine } = region;
  try {
    return { name, engine, running: await engineLists.of(region) };
  } catch (error) {
    if (!(error instanceof EngineError) || error.fault !== 'unavailable') throw error;
    void regions.check(name);
    return null;
  }
}

function freshOf(deployment: DeploymentRow, revisions: RevisionRow[]): RevisionRow {
  const fresh = revisions.find(({ number }) => number === deployment.revision);
  // The deployment ended, or its project was deleted, between two of the reads.
  if (!fresh) throw new ChangedMeanwhile();
  return fresh;
}

/** What the rules decide the next step of a rollout from. */
export async function observeRollout(
  context: ReconcileContext,
  seen: Observation,
  { deployment, fresh }: NonNullable<Observation['rollout']>,
  desired: Desired,
): Promise<Observed> {
  const { db, regions, images } = context;
  const known =
    deployment.state === 'preparing' ? images.look(deployment, fresh, regions.find(seen.environment.region)) : null;
  const image = known && 'digest' in known ? withPort(known, seen.environment, deployment) : known;
  const counts = countInstances(seen.instances, deployment);
  const isCanary = deployment.state === 'canary';
  // Before the traffic, which is then at least as new as what the alert was about.
  const alert = isCanary ? await findCanaryAlert(db, deployment) : null;
  const timeline =
    (image && 'trouble' in image) || deployment.state === 'starting' ? await timelineOf(db, deployment) : [];
  const isUnreported = timeline.filter(({ state }) => state === deployment.state).length <= 1;
  return {
    regionAvailable: seen.region !== null,
    image,
    lastMessage: timeline.at(-1)?.message ?? null,
    isUnreported,
    fresh: {
      wanted: desired.fresh,
      healthy: counts.freshHealthy,
      existing: counts.freshExisting,
      percent: fresh.traffic_percent,
    },
    previous: { wanted: desired.previous, healthy: counts.previousHealthy },
    routersBehind: deployment.state === 'promoting' ? await routersBehind(context, seen) : null,
    trouble: await troubleOf(context, seen, deployment, isUnreported),
    traffic: isCanary ? await compareTraffic(db, deployment) : noTraffic,
    alert,
  };
}

async function timelineOf(db: Db, { id }: DeploymentRow): Promise<TimelineRow[]> {
  return (await listTimelines(db, [id])).get(id)!;
}

/** The only port that the image exposes is that of an environment that set none; a rollback has the one it had. */
function withPort({ digest, exposed = [] }: PreparedImage, { port_set }: EnvironmentRow, { kind }: DeploymentRow) {
  const [port, ...others] = exposed;
  const decides = port !== undefined && others.length === 0 && port_set === 0 && kind !== 'rollback';
  return { digest, ...(decides && { port }) };
}

async function routersBehind(
  { db, routers }: ReconcileContext,
  { key, instances }: Observation,
): Promise<Observed['routersBehind']> {
  const version = await findRoutingVersion(db, key);
  if ((await routers.leastInForce()) >= version) return null;
  return { since: Math.max(...instances.map(({ state_since }) => state_since)) };
}

const noTraffic: Comparison = { stable: nothingAnswered, canary: nothingAnswered };

/** How long a program that listens nowhere is given before people are told. */
const tellAfterMs = 10_000;

async function troubleOf(
  context: ReconcileContext,
  { key, instances, region }: Observation,
  { revision, state, deadline_at }: DeploymentRow,
  isUnreported: boolean,
): Promise<Failure | null> {
  const { crashes, health, lasting } = context;
  const crashed = crashes.troubleOf(key, revision);
  if (crashed) return crashed;
  const own = instances.filter((row) => row.revision === revision);
  for (const { id } of own) {
    const found = region?.running.get(id);
    // What may pass: its start waits for that, and fails with it if it does not.
    const failure = found?.state === 'created' && state === 'starting' ? found.failure : undefined;
    if (failure && failure.code !== 'start_failed') return failure;
    const check = health.lastCheckOf(id)?.result;
    if (check && !check.ok && check.fault === 'bad_answer') return notHealthy(check, null, null);
  }
  const isLate = lasting.now() >= (deadline_at ?? Number.POSITIVE_INFINITY);
  if (state !== 'starting' || !region || !(isLate || isUnreported)) return null;
  const isOverdue = ({ started_at }: InstanceRow) => lasting.now() - (started_at ?? lasting.now()) >= tellAfterMs;
  const waiting = own.find((row) => row.state === 'starting' && (isLate || isOverdue(row)));
  return waiting ? whyNotHealthy(context, region.engine, waiting) : null;
}
