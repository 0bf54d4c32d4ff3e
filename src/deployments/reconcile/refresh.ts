// Brings the rows of an environment's instances up to date with what the engine and the health checks say.
import type { HealthCheck } from '../../contract/environments.ts';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import type { Engine, EngineInstance } from '../../engines/engine.ts';
import { type EnvironmentKey, keyOf } from '../../environments/key.ts';
import { markRoutingChanged } from '../../traffic/queries.ts';
import { deleteInstance, type InstanceRow, markInstance, setInstanceAddress } from '../instances.ts';
import type { Failure } from '../rules/steps.ts';
import type { ReconcileContext } from './context.ts';
import type { HealthTarget } from './health-watch.ts';
import { lastLines, readLogTail } from './log-tail.ts';
import { mendInstances } from './mend-times.ts';

interface Refreshed {
  key: EnvironmentKey;
  engine: Engine;
  healthCheck: HealthCheck;
  /** What the engine runs, by id. */
  running: ReadonlyMap<string, EngineInstance>;
  /** Instances with a call to the engine under way: their rows are about to change. */
  busy: ReadonlySet<string>;
}

/** Gives the rows as they are then, without those of instances that ended. */
export async function refreshInstances(
  context: ReconcileContext,
  of: Refreshed,
  rows: InstanceRow[],
): Promise<InstanceRow[]> {
  context.health.watch(of.key, healthTargets(of, rows));
  const refreshed: InstanceRow[] = [];
  for (const row of await mendInstances(context, rows)) {
    const skip = row.state === 'draining' || of.busy.has(row.id);
    const now = skip ? row : await refreshInstance(context, of, row);
    if (now) refreshed.push(now);
  }
  return refreshed;
}

/** Those that run and are to serve: health checks follow the rows, and the addresses that the engine says now. */
function healthTargets({ running, healthCheck: check }: Refreshed, rows: InstanceRow[]): HealthTarget[] {
  return rows.flatMap(({ id: instance, state }) => {
    const address = running.get(instance)?.address;
    if (!address || state === 'draining') return [];
    const known = state === 'starting' ? 'unknown' : state;
    return [{ instance, ...address, check, known }];
  });
}

/** null: it ended, or was given up. */
async function refreshInstance(
  context: ReconcileContext,
  of: Refreshed,
  known: InstanceRow,
): Promise<InstanceRow | null> {
  const { health, lasting } = context;
  const found = of.running.get(known.id);
  if (!found) {
    // The engine does not know it. One that was starting never got there and is started again; any other is lost.
    if (known.state === 'starting') return known;
    await removeInstance(context, known);
    return null;
  }
  if (found.endedWithEngine) {
    context.log.info({ instance: known.id, region: known.region }, 'an instance ended with its engine');
    // The sweep removes what is left of it: starting others comes first.
    await removeInstance(context, known);
    return null;
  }
  if (found.state === 'exited') {
    await giveUp(context, of, known, {
      code: 'crashed',
      message: `An instance ended with exit code ${found.exitCode}.`,
    });
    return null;
  }
  // The keeper starts it again.
  if (found.state === 'created') return known;
  // One that runs and has no address yet, or none any more, has as long to get one as it has to become healthy.
  const row = found.address ? await saveAddress(context, known, found.address) : known;
  const seen = found.address ? health.healthOf(row.id) : 'unhealthy';
  if (seen === 'healthy' && row.state !== 'healthy') return mark(context, row, 'healthy');
  if (seen === 'unhealthy' && row.state === 'healthy') return mark(context, row, 'unhealthy');
  const waitedMs = lasting.now() - row.state_since;
  if (row.state === 'healthy' || waitedMs <= of.healthCheck.start_timeout_s * 1000) return row;
  await giveUp(context, of, row, found.address ? whyNotHealthy(context, row) : noAddress);
  return null;
}

const noAddress: Failure = { code: 'start_timeout', message: 'An instance runs, but was given no address in time.' };

async function saveAddress(
  { lease }: ReconcileContext,
  row: InstanceRow,
  { host, port }: { host: string; port: number },
): Promise<InstanceRow> {
  if (row.host === host && row.port === port) return row;
  await lease.write(async (tx) => {
    await setInstanceAddress(tx, row.id, { host, port });
    if (row.state === 'healthy') await markRoutingChanged(tx, keyOf(row));
  });
  return { ...row, host, port };
}

async function mark(
  { lease, lasting }: ReconcileContext,
  row: InstanceRow,
  state: 'healthy' | 'unhealthy',
): Promise<InstanceRow> {
  const nowMs = lasting.now();
  await lease.write(async (tx) => {
    if (!(await markInstance(tx, row.id, [row.state], state, nowMs))) throw new ChangedMeanwhile();
    await markRoutingChanged(tx, keyOf(row));
  });
  return { ...row, state, state_since: nowMs };
}

function whyNotHealthy({ health }: ReconcileContext, row: InstanceRow): Failure {
  return (
    health.badAnswerOf(row.id) ?? { code: 'start_timeout', message: 'An instance did not become healthy in time.' }
  );
}

async function giveUp(context: ReconcileContext, of: Refreshed, row: InstanceRow, failure: Failure): Promise<void> {
  const { lasting, log, lease, crashes, engineCalls } = context;
  const logTail = await readLogTail(of.engine, row.id);
  crashes.note(of.key, row.revision, { failure, logTail, startedAt: row.created_at }, lasting.now());
  const { id, project_id, environment, revision } = row;
  log.warn({ instance: id, project: project_id, environment, revision }, failure.message);
  await removeInstance(context, row);
  engineCalls.run(of.key, id, async () => {
    await lease.confirm();
    await of.engine.stop(id, 0, lastLines(context, row, of.engine));
  });
}

async function removeInstance({ lease, health }: ReconcileContext, row: InstanceRow): Promise<void> {
  await lease.write(async (tx) => {
    await deleteInstance(tx, row.id);
    await markRoutingChanged(tx, keyOf(row));
  });
  health.forget(row.id);
}
