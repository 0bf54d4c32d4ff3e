// Makes what runs in an environment equal to what should run: starts what is missing, with back-off, and drains and stops
// what is too much.

import type { Db } from '../../db/database.ts';
import { EngineError, type InstanceSet, type Member } from '../../engines/engine.ts';
import { healthCheckOf, openSealedVariables, resourcesOf } from '../../environments/revision-settings.ts';
import { markRoutingChanged } from '../../traffic/queries.ts';
import { insertDrain } from '../../traffic/router-watch.ts';
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
import { exchangePort, hostOf, isWithin, takePorts } from '../ports.ts';
import { givenUp } from '../rules/instance-failures.ts';
import type { Failure } from '../rules/rollout.ts';
import { lastLines } from './engine-calls.ts';
import type { Kept, Observation, ObservedRegion, ReconcileContext } from './reconcile-context.ts';

/** How many instances of a revision should run. */
export interface DesiredSet {
  revision: RevisionRow;
  instances: number;
}

const isKept = (seen: Observation): seen is Kept => seen.region !== null;

/** Drains what belongs to none of the sets. Gives whether it started or drained anything. */
export async function keepInstances(
  context: ReconcileContext,
  seen: Observation,
  sets: DesiredSet[],
): Promise<boolean> {
  if (!isKept(seen)) return false;
  const { instances, busy } = seen;
  for (const row of instances) {
    if (row.state === 'draining' && !busy.has(row.id)) await stopWhenDrained(context, seen, row);
  }
  const leaving = surplusOf(instances, sets);
  const staying = instances.filter((row) => row.state !== 'draining' && !leaving.includes(row));
  for (const row of leaving) await drain(context, seen, row, staying);
  let changed = leaving.length > 0;
  for (const { revision, instances: count } of sets) {
    if (isBeingDropped(seen, revision)) continue;
    const own = staying.filter((row) => row.revision === revision.number);
    await startAgain(context, seen, revision, own);
    const missing = count - own.length;
    if (missing > 0 && (await startSome(context, seen, revision, missing)) > 0) changed = true;
  }
  dropUnused(
    context,
    seen,
    sets.map(({ revision }) => revision),
  );
  return changed;
}

/** What is more than the sets ask for, and what belongs to none of them. */
function surplusOf(instances: InstanceRow[], sets: DesiredSet[]): InstanceRow[] {
  const present = instances.filter((row) => row.state !== 'draining');
  return [...new Set(present.map((row) => row.revision))].flatMap((number) => {
    const own = present.filter((row) => row.revision === number);
    const desired = sets.find(({ revision }) => revision.number === number)?.instances ?? 0;
    return inOrderOfLeaving(own).slice(0, Math.max(0, own.length - desired));
  });
}

/** Those that do not serve leave before those that do, the newest first. */
function inOrderOfLeaving(rows: InstanceRow[]): InstanceRow[] {
  const rank = (row: InstanceRow) => (row.state === 'healthy' ? 1 : 0);
  return rows.toSorted((a, b) => rank(a) - rank(b) || (a.id < b.id ? 1 : -1));
}

/** Rows whose instance was not started: the process ended before it was created, or between that and its start. */
async function startAgain(
  context: ReconcileContext,
  seen: Kept,
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
  const id = await context.lease.write((tx) => ensureSet(tx, context, seen, revision));
  startMembers(context, seen, { id, revision }, members, context.lasting.now());
}

/** One round of starts. Gives how many it started: none while the revision has to wait after a failed round. */
async function startSome(context: ReconcileContext, seen: Kept, revision: RevisionRow, count: number): Promise<number> {
  const { lease, lasting, ids, crashes } = context;
  const { key, region } = seen;
  const nowMs = lasting.now();
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
    const addresses = await takeAddresses(tx, context, region, round);
    const restarts = await takeRestarts(tx, key, revision.number, addresses.length, nowMs);
    const starting = addresses.map((address, i) => ({
      ...{ id: round[i]!, ...common, ...address },
      restarts: restarts[i]!,
    }));
    for (const row of starting) await insertInstance(tx, row);
    return { set: await ensureSet(tx, context, seen, revision), rows: starting };
  });
  const members = rows.map(({ id, port }) => ({ id, hostPort: port }));
  startMembers(context, seen, { id: set, revision }, members, nowMs);
  return rows.length;
}

/**
 * Takes the instance out of the routing table, as those that stay are enough. It is stopped once it has finished its
 * requests.
 */
async function drain(context: ReconcileContext, seen: Kept, row: InstanceRow, staying: InstanceRow[]): Promise<void> {
  const { lease, lasting } = context;
  const nowMs = lasting.now();
  const isMarked = await lease.write(async (tx) => {
    await lockHealthy(tx, [row, ...staying]);
    if (!(await markInstance(tx, row.id, ['starting', 'healthy', 'unhealthy'], 'draining', nowMs))) return false;
    await insertDrain(tx, row.id, await markRoutingChanged(tx, seen.key));
    return true;
  });
  if (isMarked && row.state === 'starting') stop(context, seen, row);
}

/** No router sends it requests any more, and those it has got had their time. */
async function stopWhenDrained(context: ReconcileContext, seen: Kept, row: InstanceRow): Promise<void> {
  const unroutedForMs = await context.routers.unroutedForMs(row.id);
  if (unroutedForMs === null || unroutedForMs < seen.environment.drain_s * 1000) return;
  stop(context, seen, row);
}

function stop(context: ReconcileContext, { key, region, environment }: Kept, row: InstanceRow): void {
  const { lease, engineCalls } = context;
  engineCalls.run(key, row.id, async () => {
    await lease.confirm();
    await region.engine.stop(row.id, environment.drain_s, lastLines(context.takeLogs, row, region.engine));
    await lease.write((tx) => deleteInstance(tx, row.id));
  });
}

// The sets of an environment: started through their engine, and dropped once the last of their instances is gone.

const setOf = ({ sets, environment }: Observation, revision: number) =>
  sets.find((set) => set.revision === revision && set.region === environment.region);

/** Whether the set of this revision is being dropped: it can be made again after that. */
function isBeingDropped(seen: Kept, { number }: RevisionRow): boolean {
  const set = setOf(seen, number);
  return set !== undefined && seen.busy.has(set.id);
}

/** Its id. */
async function ensureSet(
  tx: Db,
  { ids, lasting }: ReconcileContext,
  seen: Kept,
  { number: revision }: RevisionRow,
): Promise<string> {
  const known = setOf(seen, revision);
  if (known) return known.id;
  const { projectId: project_id, environment } = seen.key;
  const id = ids('set');
  await insertSet(tx, { id, project_id, environment, revision, region: seen.region.name, created_at: lasting.now() });
  return id;
}

/** Only for revisions that have left `preparing`: their digest is known. */
function describe({ seal }: ReconcileContext, { environment }: Kept, id: string, revision: RevisionRow): InstanceSet {
  return {
    id,
    project: revision.project_id,
    environment: revision.environment,
    revision: revision.number,
    image: revision.image,
    digest: revision.digest!,
    port: revision.port,
    variables: openSealedVariables(revision.variables_sealed, environment, seal),
    resources: resourcesOf(revision),
    healthCheck: healthCheckOf(revision),
    drainS: environment.drain_s,
  };
}

/** `startedAt`: when their round began. The engine is asked for all at once; what came of each is heeded as it comes. */
function startMembers(
  context: ReconcileContext,
  seen: Kept,
  { id, revision }: { id: string; revision: RevisionRow },
  members: Member[],
  startedAt: number,
): void {
  const { lease, logins, engineCalls } = context;
  const keep = async () => {
    await lease.confirm();
    const set = describe(context, seen, id, revision);
    // Without it, an image that is still there starts all the same.
    const login = await logins.find(set.project, set.image).catch(() => null);
    const starts = seen.region.engine.keep({ ...set, login }, members);
    // Each is heeded below, maybe a little later.
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
        context.followLogs?.(logged, seen.region.engine);
      } catch (error) {
        await onNotStarted(context, seen, revision, member, error, startedAt);
      }
    });
  });
}

async function onNotStarted(
  context: ReconcileContext,
  { key, region }: Kept,
  revision: RevisionRow,
  { id, hostPort }: Member,
  error: unknown,
  startedAt: number,
): Promise<void> {
  const { lease, lasting, crashes } = context;
  if (error instanceof EngineError && error.fault === 'unavailable') return;
  // Nothing is wrong with the instance: the next look starts it at another port.
  if (error instanceof EngineError && error.fault === 'port_taken') {
    await changePort(context, region, id, hostPort);
    return;
  }
  const failure = startFailure(error as Error);
  crashes.note(key, revision.number, { failure, logTail: [], startedAt }, lasting.now());
  await lease.confirm();
  await region.engine.stop(id, 0).catch(() => {});
  await lease.write(async (tx) => {
    await endInstance(tx, id, givenUp(lasting.now(), failure, 'exited'));
    await publishInstanceChange(tx, key);
  });
}

/** An instance needs the registry again where its image was removed since. */
function startFailure(error: Error): Failure {
  if (error instanceof EngineError && error.failure) return error.failure;
  const message = `An instance could not be started: ${error.message}`;
  const isRegistry = error instanceof EngineError && error.fault.startsWith('registry_');
  return { code: isRegistry ? 'registry_unreachable' : 'crashed', message };
}

/** Those of no revision that should run, once the last of their instances is gone: it may be printing its last lines. */
function dropUnused(context: ReconcileContext, seen: Kept, desired: readonly RevisionRow[]): void {
  const { lease, engineCalls } = context;
  const used = new Set([...desired.map(({ number }) => number), ...seen.instances.map(({ revision }) => revision)]);
  for (const { id, revision, region } of seen.sets) {
    if (used.has(revision) || region !== seen.region.name || seen.busy.has(id) || isRunning(seen, revision)) continue;
    engineCalls.run(seen.key, id, async () => {
      await lease.confirm();
      await seen.region.engine.drop(id);
      await lease.write((tx) => deleteSet(tx, id));
    });
  }
}

const isRunning = ({ key, region }: Kept, revision: number): boolean =>
  region.running
    .values()
    .some((one) => one.project === key.projectId && one.environment === key.environment && one.revision === revision);

// The addresses that instances get before they are started, where their engine leaves that to us.

type Address = Pick<InstanceRow, 'host' | 'port'>;

/** Fewer than instances where no more ports are free: the others are started when there are. */
async function takeAddresses(
  tx: Db,
  { instancePorts: range, log }: ReconcileContext,
  { name: region, engine: { publishesOn: hosts } }: ObservedRegion,
  instances: string[],
): Promise<Address[]> {
  if (hosts === null) return instances.map(() => ({ host: null, port: null }));
  const ports = await takePorts(tx, { hosts, range }, instances);
  const host = hostOf(hosts);
  if (ports.length < instances.length) log.warn({ region, ...range }, noneFree);
  return ports.map((port) => ({ host, port }));
}

const noneFree = 'no port is free for an instance: SLUICE_INSTANCE_PORTS is too small a range, or others use its ports';

/** Of an instance that is yet to be started: another one if it has none, or one of an earlier range. Null: none is free. */
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

/** Null where none is free, or the engine does not want one. */
async function changePort(
  { lease, log, lasting, instancePorts: range }: ReconcileContext,
  { name: region, engine: { publishesOn: hosts } }: ObservedRegion,
  instance: string,
  refused: number | null,
): Promise<number | null> {
  if (hosts === null) return null;
  const port = await lease.write((tx) => exchangePort(tx, { hosts, range }, instance, refused, lasting.now()));
  if (port === null) log.warn({ region, ...range }, noneFree);
  else if (refused !== null)
    log.info({ instance, region, refused, port }, 'another program has the port of an instance');
  return port;
}
