// Makes the instances of an environment match the desired state: starts missing ones, with backoff, and drains and
// stops surplus ones.
//
// An engine runs sets: a set is one revision in one environment. A set and its instances get their rows before the
// engine is asked to start them, and lose them after they are gone, so whatever has no row is an orphan. Calls to the
// engine run in the background (engine-calls.ts); a later pass reads what came of them.

import { countPorts } from '../../accounts/account-usage.ts';
import type { Db } from '../../db/database.ts';
import { EngineError, type InstanceSet, type Member } from '../../engines/engine.ts';
import type { EnvironmentKey } from '../../environments/environment-key.ts';
import type { EnvironmentRow } from '../../environments/environment-queries.ts';
import { healthCheckOf, openVariables, resourcesOf } from '../../environments/revision-settings.ts';
import type { IdSource } from '../../lib/ids.ts';
import { insertDrain } from '../../traffic/router-watch.ts';
import { markRoutingChanged } from '../../traffic/traffic-queries.ts';
import type { RevisionRow } from '../deployment-queries.ts';
import {
  deleteInstance,
  deleteSet,
  endInstance,
  type InstanceRow,
  insertInstance,
  insertSet,
  lockHealthy,
  markInstance,
  publishInstanceChange,
  takeRestarts,
} from '../instance-queries.ts';
import { exchangePort, hostOf, isWithin, type PortOwner, type PortRange, takePorts } from '../ports.ts';
import { givenUp } from '../rules/instance-failures.ts';
import type { Failure } from '../rules/rollout.ts';
import { type EngineCalls, lastLines } from './engine-calls.ts';
import type { EnvironmentLease } from './environment-leases.ts';
import type { Observation, ObservedRegion, Reachable, ReconcileContext } from './reconcile-context.ts';

/** How many instances of a revision should run. */
export interface DesiredSet {
  revision: RevisionRow;
  instances: number;
}

const isReachable = (seen: Observation): seen is Reachable => seen.region !== null;

/**
 * Instances that belong to none of the sets are drained, and so is the one that is to be replaced. Returns whether anything
 * was started or drained.
 */
export async function keepInstances(
  context: ReconcileContext,
  seen: Observation,
  sets: DesiredSet[],
  replaced: string | null = null,
): Promise<boolean> {
  if (!isReachable(seen)) return false;
  const { instances, busy } = seen;
  for (const row of instances) {
    if (row.state === 'draining' && !busy.has(row.id)) await stopWhenDrained(context, seen, row);
  }
  const leaving = surplusOf(instances, sets, replaced);
  const staying = instances.filter((row) => row.state !== 'draining' && !leaving.includes(row));
  for (const row of leaving) await drain(context, seen, row, staying);
  let changed = leaving.length > 0;
  for (const { revision, instances: count } of sets) {
    if (isBeingDropped(seen, revision)) continue;
    const own = staying.filter((row) => row.revision === revision.number);
    await startUnstarted(context, seen, revision, own);
    const missing = count - own.length;
    if (missing > 0 && (await startMissing(context, seen, revision, missing)) > 0) changed = true;
  }
  const desired = sets.map(({ revision }) => revision.number);
  dropUnused(context.lease, context.engineCalls, seen, desired);
  return changed;
}

/** Instances beyond what the sets ask for, those that belong to no set, and the one that is to be replaced. */
function surplusOf(instances: InstanceRow[], sets: DesiredSet[], replaced: string | null): InstanceRow[] {
  const present = instances.filter((row) => row.state !== 'draining' && row.id !== replaced);
  const outlier = instances.filter((row) => row.state !== 'draining' && row.id === replaced);
  const surplus = [...new Set(present.map((row) => row.revision))].flatMap((number) => {
    const own = present.filter((row) => row.revision === number);
    const desired = sets.find(({ revision }) => revision.number === number)?.instances ?? 0;
    return leastNeededFirst(own).slice(0, Math.max(0, own.length - desired));
  });
  return [...outlier, ...surplus];
}

/** Instances that do not serve come before those that do, and newer ones before older ones. */
function leastNeededFirst(rows: InstanceRow[]): InstanceRow[] {
  const rank = (row: InstanceRow) => (row.state === 'healthy' ? 1 : 0);
  return rows.toSorted((a, b) => rank(a) - rank(b) || (a.id < b.id ? 1 : -1));
}

/** Starts instances that have a row but were not started: the process ended before the engine had started them. */
async function startUnstarted(
  context: ReconcileContext,
  seen: Reachable,
  revision: RevisionRow,
  rows: InstanceRow[],
): Promise<void> {
  const members: Member[] = [];
  for (const row of rows) {
    const { id, state } = row;
    const found = seen.region.running.get(id);
    const isUnstarted = state === 'starting' && !seen.busy.has(id) && (!found || found.state === 'created');
    const given = isUnstarted ? await portOf(context, seen.region, row) : null;
    if (given) members.push({ id, ...given });
  }
  if (members.length === 0) return;
  const id = await context.lease.write((tx) => ensureSet(tx, seen, revision, context.ids, context.deadlineClock.now()));
  startMembers(context, seen, { id, revision }, members, context.deadlineClock.now());
}

/** Starts one round of instances. Returns how many: none while the revision backs off after a failed round. */
async function startMissing(
  context: ReconcileContext,
  seen: Reachable,
  revision: RevisionRow,
  count: number,
): Promise<number> {
  const { lease, deadlineClock, ids, crashes, instancePorts, log } = context;
  const { key, region } = seen;
  const nowMs = deadlineClock.now();
  if (nowMs < crashes.nextStartAt(key, revision.number)) return 0;
  const round = Array.from({ length: count }, () => ids('ins'));
  const common = {
    project_id: key.projectId,
    environment: key.environment,
    revision: revision.number,
    region: region.name,
    state: 'starting' as const,
    created_at: nowMs,
    state_since: nowMs,
  };
  const { set, rows } = await lease.write(async (tx) => {
    const owner = await ownerOf(context, tx, key);
    const addresses = await takeAddresses(tx, instancePorts, region, round, owner);
    if (addresses.length < round.length) {
      const failure = await portsRanOut(tx, owner);
      log.warn({ region: region.name, ...instancePorts, account: owner?.accountId, failure: failure.code }, noneFree);
      crashes.note(key, revision.number, { failure, logTail: [], startedAt: nowMs }, nowMs);
    }
    const restarts = await takeRestarts(tx, key, revision.number, addresses.length, nowMs);
    const starting = addresses.map((address, i) => ({
      ...{ id: round[i]!, ...common, ...address },
      restarts: restarts[i]!,
    }));
    for (const row of starting) await insertInstance(tx, row);
    return { set: await ensureSet(tx, seen, revision, ids, nowMs), rows: starting };
  });
  const members = rows.map(({ id, port }) => ({ id, hostPort: port }));
  startMembers(context, seen, { id: set, revision }, members, nowMs);
  return rows.length;
}

/**
 * Takes the instance out of the routing table, provided that the healthy ones among `staying` still are healthy. It is
 * stopped once it has finished its requests.
 */
async function drain(
  context: ReconcileContext,
  seen: Reachable,
  row: InstanceRow,
  staying: InstanceRow[],
): Promise<void> {
  const { lease, deadlineClock } = context;
  const nowMs = deadlineClock.now();
  const isMarked = await lease.write(async (tx) => {
    await lockHealthy(tx, [row, ...staying]);
    if (!(await markInstance(tx, row.id, ['starting', 'healthy', 'unhealthy'], 'draining', nowMs))) return false;
    await insertDrain(tx, row.id, await markRoutingChanged(tx, seen.key));
    return true;
  });
  if (isMarked && row.state === 'starting') stop(context, seen, row);
}

/** Stops it once no router sends it requests any more and the drain time is over. */
async function stopWhenDrained(context: ReconcileContext, seen: Reachable, row: InstanceRow): Promise<void> {
  const unroutedForMs = await context.routers.unroutedForMs(row.id);
  if (unroutedForMs === null || unroutedForMs < seen.environment.drain_s * 1000) return;
  stop(context, seen, row);
}

function stop(
  { lease, engineCalls, takeLogs }: Pick<ReconcileContext, 'lease' | 'engineCalls' | 'takeLogs'>,
  { key, region, environment }: Reachable,
  row: InstanceRow,
): void {
  engineCalls.run(key, row.id, async () => {
    await lease.confirm();
    await region.engine.stop(row.id, environment.drain_s, lastLines(takeLogs, row, region.engine));
    await lease.write((tx) => deleteInstance(tx, row.id));
  });
}

const setOf = ({ sets, environment }: Observation, revision: number) =>
  sets.find((set) => set.revision === revision && set.region === environment.region);

/** Whether the set of this revision is being dropped; only after that can it be created again. */
function isBeingDropped(seen: Reachable, { number }: RevisionRow): boolean {
  const set = setOf(seen, number);
  return set !== undefined && seen.busy.has(set.id);
}

/** Inserts the row of the set if there is none. Returns its id. */
async function ensureSet(
  tx: Db,
  seen: Reachable,
  { number: revision }: RevisionRow,
  ids: IdSource,
  nowMs: number,
): Promise<string> {
  const known = setOf(seen, revision);
  if (known) return known.id;
  const { projectId: project_id, environment } = seen.key;
  const id = ids('set');
  await insertSet(tx, { id, project_id, environment, revision, region: seen.region.name, created_at: nowMs });
  return id;
}

/** Only for revisions that have left `preparing`, so that their digest is known. */
async function describeSet(
  { db, seal }: Pick<ReconcileContext, 'db' | 'seal'>,
  id: string,
  revision: RevisionRow,
  environment: EnvironmentRow,
): Promise<InstanceSet> {
  return {
    id,
    project: revision.project_id,
    environment: revision.environment,
    revision: revision.number,
    image: revision.image,
    digest: revision.digest!,
    port: revision.port,
    variables: await openVariables(db, revision.variables_sealed, environment, seal),
    resources: resourcesOf(revision),
    healthCheck: healthCheckOf(revision),
    drainS: environment.drain_s,
  };
}

/**
 * Asks the engine for all members at once, and handles the outcome of each as it comes. `startedAt`: of their round.
 */
function startMembers(
  context: ReconcileContext,
  seen: Reachable,
  { id, revision }: { id: string; revision: RevisionRow },
  members: Member[],
  startedAt: number,
): void {
  const { lease, logins, engineCalls, followLogs } = context;
  const keep = async () => {
    await lease.confirm();
    const set = await describeSet(context, id, revision, seen.environment);
    // Without a login, an image that the engine already has still starts.
    const login = await logins.find(set.project, set.image).catch(() => null);
    const starts = seen.region.engine.keep({ ...set, login }, members);
    // Each one is awaited below, perhaps only after it has failed.
    for (const started of starts) started.catch(() => {});
    return starts;
  };
  let kept: ReturnType<typeof keep> | null = null;
  members.forEach((member, index) => {
    engineCalls.run(seen.key, member.id, async () => {
      kept ??= keep();
      const starts = await kept;
      try {
        await starts[index];
        const logged = { id: member.id, key: seen.key, revision: revision.number };
        followLogs?.(logged, seen.region.engine);
      } catch (error) {
        await onNotStarted(context, seen, revision, member, error, startedAt);
      }
    });
  });
}

async function onNotStarted(
  context: ReconcileContext,
  { key, region }: Reachable,
  revision: RevisionRow,
  { id, hostPort }: Member,
  error: unknown,
  startedAt: number,
): Promise<void> {
  const { lease, deadlineClock, crashes } = context;
  if (error instanceof EngineError && error.fault === 'unavailable') return;
  // Nothing is wrong with the instance: the next pass starts it at another port.
  if (error instanceof EngineError && error.fault === 'port_taken') {
    await changePort(context, region, id, hostPort);
    return;
  }
  const failure = startFailure(error as Error);
  crashes.note(key, revision.number, { failure, logTail: [], startedAt }, deadlineClock.now());
  await lease.confirm();
  await region.engine.stop(id, 0).catch(() => {});
  await lease.write(async (tx) => {
    await endInstance(tx, id, givenUp(deadlineClock.now(), failure, 'exited'));
    await publishInstanceChange(tx, key);
  });
}

/** A start can fail because of the registry, if the image has been removed from the engine. */
function startFailure(error: Error): Failure {
  if (error instanceof EngineError && error.failure) return error.failure;
  const message = `An instance could not be started: ${error.message}`;
  const isRegistry = error instanceof EngineError && error.fault.startsWith('registry_');
  return { code: isRegistry ? 'registry_unreachable' : 'crashed', message };
}

/** Drops sets of revisions that should not run, once the last of their instances is gone with its last log lines. */
function dropUnused(lease: EnvironmentLease, calls: EngineCalls, seen: Reachable, desired: number[]): void {
  const used = new Set([...desired, ...seen.instances.map(({ revision }) => revision)]);
  for (const { id, revision, region } of seen.sets) {
    if (used.has(revision) || region !== seen.region.name || seen.busy.has(id) || isRunning(seen, revision)) continue;
    calls.run(seen.key, id, async () => {
      await lease.confirm();
      await seen.region.engine.drop(id);
      await lease.write((tx) => deleteSet(tx, id));
    });
  }
}

const isRunning = ({ key, region }: Reachable, revision: number): boolean =>
  region.running
    .values()
    .some((one) => one.project === key.projectId && one.environment === key.environment && one.revision === revision);

type Address = Pick<InstanceRow, 'host' | 'port'>;

/**
 * The addresses that instances get before they are started, on engines that leave that to us. Fewer than instances if
 * too few ports are free: the others are started once there are more.
 */
async function takeAddresses(
  tx: Db,
  range: PortRange,
  { engine: { publishesOn: hosts } }: ObservedRegion,
  instances: string[],
  owner: PortOwner | null,
): Promise<Address[]> {
  if (hosts === null) return instances.map(() => ({ host: null, port: null }));
  const ports = await takePorts(tx, { hosts, range }, instances, owner);
  const host = hostOf(hosts);
  return ports.map((port) => ({ host, port }));
}

const noneFree =
  'no port is free for an instance: the account has as many as it may, SLUICE_INSTANCE_PORTS is too small a range, or others use its ports';

async function ownerOf({ quotas }: ReconcileContext, tx: Db, { projectId }: EnvironmentKey): Promise<PortOwner | null> {
  const project = tx.selectFrom('project').select('account_id').where('id', '=', projectId);
  const accountId = (await project.executeTakeFirst())?.account_id;
  if (accountId === undefined) return null;
  return { accountId, most: quotas ? await quotas.portsOf(tx, accountId) : null };
}

/** For the one whose instances wait. What others have is not told. */
async function portsRanOut(tx: Db, owner: PortOwner | null): Promise<Failure> {
  const used = owner?.most == null ? 0 : await countPorts(tx, owner.accountId);
  if (owner?.most != null && used >= owner.most) {
    const message = `The account has all ${owner.most} host ports that it may have (quota ports), those included that were freed a few minutes ago: lower replicas, or wait.`;
    return { code: 'quota_exceeded', message };
  }
  const message =
    'No host port is free for an instance on this installation. Its operator can widen SLUICE_INSTANCE_PORTS.';
  return { code: 'unschedulable', message };
}

/**
 * The port of an instance to be started; it gets another if it has none, or one outside the range. null: none is free.
 */
async function portOf(
  context: ReconcileContext,
  region: ObservedRegion,
  { id, port }: InstanceRow,
): Promise<{ hostPort: number | null } | null> {
  if (region.engine.publishesOn === null) return { hostPort: null };
  if (port !== null && isWithin(context.instancePorts, port)) return { hostPort: port };
  const hostPort = await changePort(context, region, id, port);
  return hostPort === null ? null : { hostPort };
}

/** null: none is free, or the engine needs none. */
async function changePort(
  { lease, log, deadlineClock, instancePorts: range }: ReconcileContext,
  { name: region, engine: { publishesOn: hosts } }: ObservedRegion,
  instance: string,
  refused: number | null,
): Promise<number | null> {
  if (hosts === null) return null;
  const port = await lease.write((tx) => exchangePort(tx, { hosts, range }, instance, refused, deadlineClock.now()));
  if (port === null) log.warn({ region, ...range }, noneFree);
  else if (refused !== null)
    log.info({ instance, region, refused, port }, 'another program has the port of an instance');
  return port;
}
