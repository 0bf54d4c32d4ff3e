// Brings the rows of an environment's instances up to date with what the engine and the health checks report: which of
// them run and where, which are healthy, which have ended, and which are given up because they do not become healthy.
import type { HealthCheck } from '../../contract/environments.ts';
import type { Db } from '../../db/database.ts';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import type { Engine, EngineInstance } from '../../engines/engine.ts';
import { type EnvironmentKey, keyOf } from '../../environments/environment-key.ts';
import { markRoutingChanged } from '../../traffic/traffic-queries.ts';
import {
  type CheckFields,
  endInstance,
  type HowItEnded,
  type InstanceRow,
  markInstance,
  publishInstanceChange,
  setInstanceCheck,
  setInstanceFound,
} from '../instance-queries.ts';
import {
  endedWithEngine,
  failureOf,
  givenUp,
  howItEnded,
  type Listening,
  notHealthy,
  vanished,
} from '../rules/instance-failures.ts';
import type { Failure } from '../rules/rollout.ts';
import { clampInstanceTimes } from './clamp-times.ts';
import { lastLines, readLogTail } from './engine-calls.ts';
import type { EnvironmentLease } from './environment-leases.ts';
import type { Health, HealthTarget, HealthWatch, LastCheck } from './health-checks.ts';
import type { ReconcileContext } from './reconcile-context.ts';

interface Refreshed {
  key: EnvironmentKey;
  engine: Engine;
  /** By revision. */
  healthChecks: ReadonlyMap<number, HealthCheck>;
  /** What the engine runs, by id. */
  running: ReadonlyMap<string, EngineInstance>;
  /** Instances with a call to the engine under way: their rows are about to change. */
  busy: ReadonlySet<string>;
}

/** Returns the updated rows, without those of instances that ended. */
export async function refreshInstances(
  context: ReconcileContext,
  of: Refreshed,
  rows: InstanceRow[],
): Promise<InstanceRow[]> {
  context.health.watch(of.key, healthTargets(context.db, of, rows));
  const refreshed: InstanceRow[] = [];
  for (const row of await clampInstanceTimes(context.lease, rows, context.deadlineClock.now())) {
    const skip = row.state === 'draining' || of.busy.has(row.id);
    const now = skip ? row : await refreshInstance(context, of, row);
    if (now) refreshed.push(now);
  }
  return saveChecks(context.lease, context.health, refreshed, context.deadlineClock.now());
}

/** Instances that run and should serve, at the addresses that the engine reports now. */
function healthTargets(db: Db, { engine, running, healthChecks }: Refreshed, rows: InstanceRow[]): HealthTarget[] {
  return rows.flatMap((row) => {
    const { id: instance, state, revision } = row;
    const address = running.get(instance)?.address;
    const check = healthChecks.get(revision);
    if (!address || !check || state === 'draining') return [];
    const known = state === 'starting' ? 'unknown' : state;
    const listens = () => listensOnPort(db, engine, row);
    return [{ instance, ...address, check, known, ...(engine.listening && { listens }) }];
  });
}

/** null: it ended, or was given up. */
async function refreshInstance(
  context: ReconcileContext,
  of: Refreshed,
  known: InstanceRow,
): Promise<InstanceRow | null> {
  const { lease, health, deadlineClock } = context;
  const found = of.running.get(known.id);
  if (!found) {
    // The engine does not know it. One that was starting never reached the engine and is started again; any other is
    // lost.
    if (known.state === 'starting') return known;
    if (!of.engine.isForgetful) {
      await removeInstance(lease, health, known, vanished(deadlineClock.now()));
      return null;
    }
  }
  if (!found || found.endedWithEngine) {
    context.log.info({ instance: known.id, region: known.region }, 'an instance ended with its engine');
    // The sweep removes what is left of it; starting replacements comes first.
    await removeInstance(lease, health, known, endedWithEngine(deadlineClock.now()));
    return null;
  }
  if (found.state === 'exited') {
    const end = howItEnded(found, deadlineClock.now());
    const failure = found.failure ?? failureOf(end);
    await giveUp(context, of, known, failure, { ...end, message: failure.message });
    return null;
  }
  // The keeper starts it again. One that ran before is being replaced by its engine, and has the usual start timeout.
  if (found.state === 'created' && known.state === 'starting') return known;
  // One that runs without an address has as long to get one as it has to become healthy.
  const row = await saveFound(lease, known, found, deadlineClock.now());
  const seen = healthSeen(found, health.healthOf(row.id));
  if (seen === 'healthy' && row.state !== 'healthy' && (await isProved(context, of, row)))
    return mark(lease, row, 'healthy', deadlineClock.now());
  if (seen === 'unhealthy' && row.state === 'healthy') {
    const check = health.lastCheckOf(row.id)?.result;
    // It may serve visitors all the same: where none is healthy, those that could not be reached from here still get requests.
    const isFallback =
      found.address !== null && found.ready === undefined && check?.ok === false && check.fault !== 'bad_answer';
    return mark(lease, row, 'unhealthy', deadlineClock.now(), isFallback);
  }
  // Its host is unreachable, which is not the instance's fault: either the host comes back, or the instance is gone
  // with it.
  if (found.hostAway) return row;
  const waitedMs = deadlineClock.now() - row.state_since;
  const startTimeoutS = of.healthChecks.get(row.revision)?.start_timeout_s;
  if (row.state === 'healthy' || startTimeoutS === undefined || waitedMs <= startTimeoutS * 1000) return row;
  const failure = found.address
    ? await whyNotHealthy(context.db, of.engine, row, health.lastCheckOf(row.id))
    : (found.failure ?? noAddress);
  await giveUp(context, of, row, failure, givenUp(deadlineClock.now(), failure, 'killed'));
  return null;
}

/** An HTTP answer came from the program itself; a TCP connection may have been accepted by something else. */
async function isProved({ db, health }: ReconcileContext, { engine, healthChecks }: Refreshed, row: InstanceRow) {
  if (healthChecks.get(row.revision)?.path !== null) return true;
  const check = health.lastCheckOf(row.id)?.result;
  return (check?.ok && check.listens) || (await listens(db, engine, row));
}

/** An engine that checks health itself decides; our own checks (`probed`) then only explain. */
function healthSeen({ address, ready }: EngineInstance, probed: Health): Health {
  if (!address) return 'unhealthy';
  if (ready === undefined) return probed;
  return ready ? 'healthy' : 'unhealthy';
}

const noAddress: Failure = { code: 'start_timeout', message: 'An instance runs, but was given no address in time.' };

/** Saves since when the instance runs, on which node and at which address. */
async function saveFound(
  lease: EnvironmentLease,
  row: InstanceRow,
  { address, node }: EngineInstance,
  nowMs: number,
): Promise<InstanceRow> {
  const isNew = row.started_at === null;
  const hasMoved = address !== null && (row.host !== address.host || row.port !== address.port);
  if (!isNew && !hasMoved) return row;
  const found = {
    ...(isNew && { started_at: nowMs, node: node ?? null }),
    ...(hasMoved && { ...address, is_fallback: 0 }),
  };
  await lease.write(async (tx) => {
    await setInstanceFound(tx, row.id, found);
    if (hasMoved && (row.state === 'healthy' || row.is_fallback === 1)) await markRoutingChanged(tx, keyOf(row));
    if (isNew) await publishInstanceChange(tx, keyOf(row));
  });
  return { ...row, ...found };
}

async function mark(
  lease: EnvironmentLease,
  row: InstanceRow,
  state: 'healthy' | 'unhealthy',
  nowMs: number,
  isFallback = false,
): Promise<InstanceRow> {
  await lease.write(async (tx) => {
    if (!(await markInstance(tx, row.id, [row.state], state, nowMs, isFallback))) throw new ChangedMeanwhile();
    await markRoutingChanged(tx, keyOf(row));
    await publishInstanceChange(tx, keyOf(row));
  });
  return { ...row, state, state_since: nowMs, is_fallback: isFallback ? 1 : 0 };
}

async function giveUp(
  context: ReconcileContext,
  of: Refreshed,
  row: InstanceRow,
  failure: Failure,
  end: HowItEnded,
): Promise<void> {
  const { deadlineClock, log, lease, health, crashes, engineCalls } = context;
  const logTail = await readLogTail(of.engine, row.id);
  crashes.note(of.key, row.revision, { failure, logTail, startedAt: row.created_at }, deadlineClock.now());
  const { id, project_id, environment, revision } = row;
  log.warn({ instance: id, project: project_id, environment, revision }, failure.message);
  await removeInstance(lease, health, row, end);
  engineCalls.run(of.key, id, async () => {
    await lease.confirm();
    await of.engine.stop(id, 0, lastLines(context.takeLogs, row, of.engine));
  });
}

async function removeInstance(
  lease: EnvironmentLease,
  health: HealthWatch,
  row: InstanceRow,
  end: HowItEnded,
): Promise<void> {
  await lease.write(async (tx) => {
    await endInstance(tx, row.id, end);
    await markRoutingChanged(tx, keyOf(row));
    await publishInstanceChange(tx, keyOf(row));
  });
  health.forget(row.id);
}

export const checkSavedEveryMs = 30_000;
const maxMessage = 500;

/**
 * Saves the latest health check of each instance, which the API shows. Only the process that holds the environment's
 * lease makes checks, so the others read them from the rows. To write little, a check is saved when its outcome
 * or the fault changes, and otherwise every half a minute. Returns the updated rows.
 */
async function saveChecks(
  lease: EnvironmentLease,
  health: HealthWatch,
  rows: InstanceRow[],
  nowMs: number,
): Promise<InstanceRow[]> {
  const changed = new Map<string, CheckFields>();
  for (const row of rows) {
    const check = checkFields(health.lastCheckOf(row.id), nowMs);
    if (check && shouldSave(row, check)) changed.set(row.id, check);
  }
  if (changed.size === 0) return rows;
  await lease.write(async (tx) => {
    for (const [id, check] of changed) await setInstanceCheck(tx, id, check);
  });
  return rows.map((row) => ({ ...row, ...changed.get(row.id) }));
}

function checkFields(last: LastCheck | null, nowMs: number): CheckFields | null {
  if (!last) return null;
  const { ok, message = 'connected' } = last.result;
  return {
    checked_at: Math.round(nowMs - last.agoMs),
    check_ok: ok ? 1 : 0,
    check_message: message.slice(0, maxMessage),
  };
}

/** The absolute difference, in case the clock was set back since. */
function shouldSave(row: InstanceRow, check: CheckFields): boolean {
  const hasTurned = row.check_ok !== check.check_ok;
  const hasOtherFault = check.check_ok === 0 && row.check_message !== check.check_message;
  return hasTurned || hasOtherFault || Math.abs(check.checked_at! - (row.checked_at ?? 0)) >= checkSavedEveryMs;
}

/**
 * Why a running instance is not healthy, and what to do about it. Asks the engine for open ports where that matters.
 */
export async function whyNotHealthy(
  db: Db,
  engine: Engine,
  row: InstanceRow,
  lastCheck: LastCheck | null,
): Promise<Failure> {
  const check = lastCheck?.result ?? null;
  if (!check || (!check.ok && check.fault === 'bad_answer')) return notHealthy(check, null, null);
  // An engine that does not know the ports leaves only the check to go by.
  const { port, listening } = await readListening(db, engine, row);
  return notHealthy(check, port, listening);
}

interface ListeningPorts {
  /** The port it should listen on; null: the revision is gone. */
  port: number | null;
  /** null: not known. */
  listening: Listening;
}

/** Which ports the program of an instance listens on, if its engine can tell. */
async function readListening(
  db: Db,
  engine: Pick<Engine, 'listening'>,
  { id, project_id, environment, revision }: InstanceRow,
): Promise<ListeningPorts> {
  const row = await db
    .selectFrom('revision')
    .select('port')
    .where('project_id', '=', project_id)
    .where('environment', '=', environment)
    .where('number', '=', revision)
    .executeTakeFirst();
  const listening = await engine.listening?.(id).catch(() => null);
  return { port: row?.port ?? null, listening: listening ?? null };
}

/**
 * Whether an instance that accepts connections really listens. Docker's proxy accepts them on behalf of a program that
 * does not, and on a busy machine it takes its time to close them.
 */
export async function listens(db: Db, engine: Pick<Engine, 'listening' | 'list'>, row: InstanceRow): Promise<boolean> {
  if (!engine.listening) return true;
  // The ports are unknown also for an instance that has ended, which listens nowhere.
  return (await listensOnPort(db, engine, row)) ?? runs(engine, row.id);
}

/** null: it cannot be told. */
async function listensOnPort(db: Db, engine: Pick<Engine, 'listening'>, row: InstanceRow): Promise<boolean | null> {
  const { port, listening } = await readListening(db, engine, row);
  return port === null || listening === null ? null : listening.open.includes(port);
}

async function runs(engine: Pick<Engine, 'list'>, instance: string): Promise<boolean> {
  const found = await engine.list().catch(() => []);
  return found.some(({ id, state }) => id === instance && state === 'running');
}
