// Brings the rows of an environment's instances up to date with what the engine and the health checks say.
import type { HealthCheck } from '../../contract/environments.ts';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import type { Engine, EngineInstance } from '../../engines/engine.ts';
import { type EnvironmentKey, keyOf } from '../../environments/key.ts';
import { markRoutingChanged } from '../../traffic/queries.ts';
import { deleteInstance, type InstanceRow, markInstance, setInstanceAddress } from '../instances.ts';
import type { Failure } from '../rules/steps.ts';
import type { ReconcileContext } from './context.ts';
import { readLogTail } from './log-tail.ts';

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
  const refreshed: InstanceRow[] = [];
  for (const row of rows) {
    const skip = row.state === 'draining' || of.busy.has(row.id);
    const now = skip ? row : await refreshInstance(context, of, row);
    if (now) refreshed.push(now);
  }
  return refreshed;
}

/** null: it ended, or was given up. */
async function refreshInstance(
  context: ReconcileContext,
  of: Refreshed,
  known: InstanceRow,
): Promise<InstanceRow | null> {
  const { clock, health } = context;
  const found = of.running.get(known.id);
  if (!found) {
    // The engine does not know it. One that was starting never got there and is started again; any other is lost.
    if (known.state === 'starting') return known;
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
  if (!found.address) return known;
  const row = await saveAddress(context, known, found.address);
  health.watch(of.key, row.id, found.address, of.healthCheck, row.state === 'starting' ? 'unknown' : healthOf(row));
  const seen = health.healthOf(row.id);
  if (seen === 'healthy' && row.state !== 'healthy') return mark(context, row, 'healthy');
  const waitedMs = clock.now() - row.state_since;
  if (row.state !== 'healthy' && waitedMs > of.healthCheck.start_timeout_s * 1000) {
    await giveUp(context, of, row, whyNotHealthy(context, row));
    return null;
  }
  return seen === 'unhealthy' && row.state === 'healthy' ? mark(context, row, 'unhealthy') : row;
}

const healthOf = ({ state }: InstanceRow) => (state === 'healthy' ? 'healthy' : 'unhealthy');

async function saveAddress(
  { db }: ReconcileContext,
  row: InstanceRow,
  { host, port }: { host: string; port: number },
): Promise<InstanceRow> {
  if (row.host === host && row.port === port) return row;
  await db.transaction().execute(async (tx) => {
    await setInstanceAddress(tx, row.id, { host, port });
    if (row.state === 'healthy') await markRoutingChanged(tx, keyOf(row));
  });
  return { ...row, host, port };
}

async function mark(
  { db, clock }: ReconcileContext,
  row: InstanceRow,
  state: 'healthy' | 'unhealthy',
): Promise<InstanceRow> {
  const nowMs = clock.now();
  await db.transaction().execute(async (tx) => {
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
  const { clock, log, crashes, engineCalls } = context;
  crashes.note(of.key, row.revision, failure, await readLogTail(of.engine, row.id), clock.now());
  const { id, project_id, environment, revision } = row;
  log.warn({ instance: id, project: project_id, environment, revision }, failure.message);
  await removeInstance(context, row);
  engineCalls.run(of.key, id, () => of.engine.stop(id, 0));
}

async function removeInstance({ db, health }: ReconcileContext, row: InstanceRow): Promise<void> {
  health.forget(row.id);
  await db.transaction().execute(async (tx) => {
    await deleteInstance(tx, row.id);
    await markRoutingChanged(tx, keyOf(row));
  });
}
