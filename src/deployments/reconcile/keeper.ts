// Makes what runs in an environment equal to what should run: starts what is missing, with back-off, and drains and stops
// what is too much.
import type { InstanceSpec } from '../../engines/engine.ts';
import { EngineError } from '../../engines/engine.ts';
import { healthCheckOf, resourcesOf } from '../../environments/revision-settings.ts';
import { openSealedVariables } from '../../environments/sealed-variables.ts';
import { markRoutingChanged } from '../../traffic/queries.ts';
import { insertDrain } from '../../traffic/router-watch.ts';
import { endInstance, takeRestarts } from '../instance-ends.ts';
import { deleteInstance, type InstanceRow, insertInstance, lockHealthy, markInstance } from '../instances.ts';
import type { RevisionRow } from '../queries.ts';
import type { Failure } from '../rules/steps.ts';
import { givenUp } from '../rules/why-ended.ts';
import { changePort, portOf, takeAddresses } from './addresses.ts';
import type { ReconcileContext } from './context.ts';
import { publishChange } from './instances/publish-change.ts';
import { lastLines } from './log-tail.ts';
import type { Observation, ObservedRegion } from './observe.ts';

/** How many instances of a revision should run. */
export interface DesiredSet {
  revision: RevisionRow;
  instances: number;
}

/** An observation of an environment whose region answers. */
type Kept = Observation & { region: ObservedRegion };

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
  for (const set of sets) {
    const own = staying.filter((row) => row.revision === set.revision.number);
    await startAgain(context, seen, set, own);
    const missing = set.instances - own.length;
    if (missing > 0 && (await startSome(context, seen, set.revision, missing)) > 0) changed = true;
  }
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

/** A row whose instance was not started: the process ended before it was created, or between that and its start. */
async function startAgain(
  context: ReconcileContext,
  seen: Kept,
  { revision }: DesiredSet,
  rows: InstanceRow[],
): Promise<void> {
  for (const row of rows) {
    const { id, state } = row;
    const found = seen.region.running.get(id);
    const isUnstarted = state === 'starting' && !seen.busy.has(id) && (!found || found.state === 'created');
    if (!isUnstarted) continue;
    const given = await portOf(context, seen.region, row);
    if (given) start(context, seen, { ...specOf(context, seen, revision), id, ...given }, context.lasting.now());
  }
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
  const rows = await lease.write(async (tx) => {
    const addresses = await takeAddresses(tx, context, region, round);
    const restarts = await takeRestarts(tx, key, revision.number, addresses.length, nowMs);
    const starting = addresses.map((address, i) => ({
      ...{ id: round[i]!, ...common, ...address },
      restarts: restarts[i]!,
    }));
    for (const row of starting) await insertInstance(tx, row);
    return starting;
  });
  const spec = specOf(context, seen, revision);
  for (const { id, port } of rows) start(context, seen, { ...spec, id, hostPort: port }, nowMs);
  return rows.length;
}

/** Only for revisions that have left `preparing`: their digest is known. */
function specOf(
  { seal }: ReconcileContext,
  { environment }: Kept,
  revision: RevisionRow,
): Omit<InstanceSpec, 'id' | 'hostPort'> {
  return {
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

/** `startedAt`: when its round began. */
function start(context: ReconcileContext, { key, region }: Kept, spec: InstanceSpec, startedAt: number): void {
  const { lease, lasting, logins, crashes, engineCalls } = context;
  engineCalls.run(key, spec.id, async () => {
    await lease.confirm();
    try {
      // Without it, an image that is still there starts all the same.
      const login = await logins.find(spec.project, spec.image).catch(() => null);
      await region.engine.start({ ...spec, login });
      context.followLogs?.({ id: spec.id, key, revision: spec.revision }, region.engine);
    } catch (error) {
      if (error instanceof EngineError && error.fault === 'unavailable') return;
      // Nothing is wrong with the instance: the next look starts it at another port.
      if (error instanceof EngineError && error.fault === 'port_taken') {
        await changePort(context, region, spec.id, spec.hostPort);
        return;
      }
      const failure = startFailure(error as Error);
      crashes.note(key, spec.revision, { failure, logTail: [], startedAt }, lasting.now());
      await lease.confirm();
      await region.engine.stop(spec.id, 0).catch(() => {});
      await lease.write(async (tx) => {
        await endInstance(tx, spec.id, givenUp(lasting.now(), failure, 'exited'));
        await publishChange(tx, key);
      });
    }
  });
}

/** An instance needs the registry again where its image was removed since. */
function startFailure(error: Error): Failure {
  if (error instanceof EngineError && error.failure) return error.failure;
  const message = `An instance could not be started: ${error.message}`;
  const isRegistry = error instanceof EngineError && error.fault.startsWith('registry_');
  return { code: isRegistry ? 'registry_unreachable' : 'crashed', message };
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
    await region.engine.stop(row.id, environment.drain_s, lastLines(context, row, region.engine));
    await lease.write((tx) => deleteInstance(tx, row.id));
  });
}
