// Makes what runs in an environment equal to what should run: starts what is missing, with back-off, and drains and stops
// what is too much.
import type { Member } from '../../engines/engine.ts';
import { markRoutingChanged } from '../../traffic/queries.ts';
import { insertDrain } from '../../traffic/router-watch.ts';
import { takeRestarts } from '../instance-ends.ts';
import { deleteInstance, type InstanceRow, insertInstance, lockHealthy, markInstance } from '../instances.ts';
import type { RevisionRow } from '../queries.ts';
import { portOf, takeAddresses } from './addresses.ts';
import type { Kept, Observation, ReconcileContext } from './context.ts';
import { lastLines } from './log-tail.ts';
import { dropUnused, ensureSet, isBeingDropped, startMembers } from './sets.ts';

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
