// The sets of an environment: started through their engine, and dropped once the last of their instances is gone.
import type { Db } from '../../db/database.ts';
import { EngineError, type InstanceSet, type Member } from '../../engines/engine.ts';
import { healthCheckOf, resourcesOf } from '../../environments/revision-settings.ts';
import { openSealedVariables } from '../../environments/sealed-variables.ts';
import { endInstance } from '../instance-ends.ts';
import { deleteSet, insertSet } from '../instance-sets.ts';
import type { RevisionRow } from '../queries.ts';
import type { Failure } from '../rules/steps.ts';
import { givenUp } from '../rules/why-ended.ts';
import { changePort } from './addresses.ts';
import type { Kept, Observation, ReconcileContext } from './context.ts';
import { publishChange } from './instances/publish-change.ts';

const setOf = ({ sets, environment }: Observation, revision: number) =>
  sets.find((set) => set.revision === revision && set.region === environment.region);

/** Whether the set of this revision is being dropped: it can be made again after that. */
export function isBeingDropped(seen: Kept, { number }: RevisionRow): boolean {
  const set = setOf(seen, number);
  return set !== undefined && seen.busy.has(set.id);
}

/** Its id. */
export async function ensureSet(
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
export function startMembers(
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
    await publishChange(tx, key);
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
export function dropUnused(context: ReconcileContext, seen: Kept, desired: readonly RevisionRow[]): void {
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
