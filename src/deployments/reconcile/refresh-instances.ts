// Brings the rows of an environment's instances up to date with what the engine and the health checks say.
import type { HealthCheck } from '../../contract/environments.ts';
import { ChangedMeanwhile } from '../../db/guarded.ts';
import type { Engine, EngineInstance } from '../../engines/engine.ts';
import { type EnvironmentKey, keyOf } from '../../environments/environment-key.ts';
import { markRoutingChanged } from '../../traffic/queries.ts';
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
import type { Health, HealthTarget } from './health-checks.ts';
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

/** Gives the rows as they are then, without those of instances that ended. */
export async function refreshInstances(
  context: ReconcileContext,
  of: Refreshed,
  rows: InstanceRow[],
): Promise<InstanceRow[]> {
  context.health.watch(of.key, healthTargets(of, rows));
  const refreshed: InstanceRow[] = [];
  for (const row of await clampInstanceTimes(context, rows)) {
    const skip = row.state === 'draining' || of.busy.has(row.id);
    const now = skip ? row : await refreshInstance(context, of, row);
    if (now) refreshed.push(now);
  }
  return saveChecks(context, refreshed);
}

/** Those that run and are to serve: health checks follow the rows, and the addresses that the engine says now. */
function healthTargets({ running, healthChecks }: Refreshed, rows: InstanceRow[]): HealthTarget[] {
  return rows.flatMap(({ id: instance, state, revision }) => {
    const address = running.get(instance)?.address;
    const check = healthChecks.get(revision);
    if (!address || !check || state === 'draining') return [];
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
    await removeInstance(context, known, vanished(lasting.now()));
    return null;
  }
  if (found.endedWithEngine) {
    context.log.info({ instance: known.id, region: known.region }, 'an instance ended with its engine');
    // The sweep removes what is left of it: starting others comes first.
    await removeInstance(context, known, endedWithEngine(lasting.now()));
    return null;
  }
  if (found.state === 'exited') {
    const end = howItEnded(found, lasting.now());
    const failure = found.failure ?? failureOf(end);
    await giveUp(context, of, known, failure, { ...end, message: failure.message });
    return null;
  }
  // The keeper starts it again. One that ran before is being replaced by its engine, and has as long as any other.
  if (found.state === 'created' && known.state === 'starting') return known;
  // One that runs and has no address yet, or none any more, has as long to get one as it has to become healthy.
  const row = await saveFound(context, known, found);
  const seen = healthSeen(found, health.healthOf(row.id));
  if (seen === 'healthy' && row.state !== 'healthy' && (await isProved(context, of, row)))
    return mark(context, row, 'healthy');
  if (seen === 'unhealthy' && row.state === 'healthy') return mark(context, row, 'unhealthy');
  // It is not to blame for its host: either that is back soon, or the instance is gone with it.
  if (found.hostAway) return row;
  const waitedMs = lasting.now() - row.state_since;
  const startTimeoutS = of.healthChecks.get(row.revision)?.start_timeout_s;
  if (row.state === 'healthy' || startTimeoutS === undefined || waitedMs <= startTimeoutS * 1000) return row;
  const failure = found.address ? await whyNotHealthy(context, of.engine, row) : (found.failure ?? noAddress);
  await giveUp(context, of, row, failure, givenUp(lasting.now(), failure, 'killed'));
  return null;
}

/** A path was answered by the program itself; a connection may have been accepted by someone else. */
async function isProved(context: ReconcileContext, { engine, healthChecks }: Refreshed, row: InstanceRow) {
  return healthChecks.get(row.revision)?.path !== null || (await listens(context, engine, row));
}

/** An engine that checks health itself decides; `probed`, what our own checks say, then only explains. */
function healthSeen({ address, ready }: EngineInstance, probed: Health): Health {
  if (!address) return 'unhealthy';
  if (ready === undefined) return probed;
  return ready ? 'healthy' : 'unhealthy';
}

const noAddress: Failure = { code: 'start_timeout', message: 'An instance runs, but was given no address in time.' };

/** It runs: since when, where, and at which address. */
async function saveFound(
  { lease, lasting }: ReconcileContext,
  row: InstanceRow,
  { address, node }: EngineInstance,
): Promise<InstanceRow> {
  const isNew = row.started_at === null;
  const hasMoved = address !== null && (row.host !== address.host || row.port !== address.port);
  if (!isNew && !hasMoved) return row;
  const found = { ...(isNew && { started_at: lasting.now(), node: node ?? null }), ...(hasMoved && address) };
  await lease.write(async (tx) => {
    await setInstanceFound(tx, row.id, found);
    if (hasMoved && row.state === 'healthy') await markRoutingChanged(tx, keyOf(row));
    if (isNew) await publishInstanceChange(tx, keyOf(row));
  });
  return { ...row, ...found };
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
    await publishInstanceChange(tx, keyOf(row));
  });
  return { ...row, state, state_since: nowMs };
}

async function giveUp(
  context: ReconcileContext,
  of: Refreshed,
  row: InstanceRow,
  failure: Failure,
  end: HowItEnded,
): Promise<void> {
  const { lasting, log, lease, crashes, engineCalls } = context;
  const logTail = await readLogTail(of.engine, row.id);
  crashes.note(of.key, row.revision, { failure, logTail, startedAt: row.created_at }, lasting.now());
  const { id, project_id, environment, revision } = row;
  log.warn({ instance: id, project: project_id, environment, revision }, failure.message);
  await removeInstance(context, row, end);
  engineCalls.run(of.key, id, async () => {
    await lease.confirm();
    await of.engine.stop(id, 0, lastLines(context.takeLogs, row, of.engine));
  });
}

async function removeInstance({ lease, health }: ReconcileContext, row: InstanceRow, end: HowItEnded): Promise<void> {
  await lease.write(async (tx) => {
    await endInstance(tx, row.id, end);
    await markRoutingChanged(tx, keyOf(row));
    await publishInstanceChange(tx, keyOf(row));
  });
  health.forget(row.id);
}

// What the latest health check of each instance said, as the API shows it. Only the process that looks after an
// environment makes checks, so they are rows; but few writes: when the outcome turns, else every half a minute.

const everyMs = 30_000;
const maxMessage = 500;

/** Gives the rows as they are then. */
async function saveChecks(context: ReconcileContext, rows: InstanceRow[]): Promise<InstanceRow[]> {
  const news = new Map<string, CheckFields>();
  for (const row of rows) {
    const check = checkOf(context, row);
    if (check && shouldSave(row, check)) news.set(row.id, check);
  }
  if (news.size === 0) return rows;
  await context.lease.write(async (tx) => {
    for (const [id, check] of news) await setInstanceCheck(tx, id, check);
  });
  return rows.map((row) => ({ ...row, ...news.get(row.id) }));
}

function checkOf({ health, lasting }: ReconcileContext, { id }: InstanceRow): CheckFields | null {
  const last = health.lastCheckOf(id);
  if (!last) return null;
  const { ok, message = 'connected' } = last.result;
  return {
    checked_at: Math.round(lasting.now() - last.agoMs),
    check_ok: ok ? 1 : 0,
    check_message: message.slice(0, maxMessage),
  };
}

/** Also where the clock was set back since. */
function shouldSave(row: InstanceRow, check: CheckFields): boolean {
  return row.check_ok !== check.check_ok || Math.abs(check.checked_at! - (row.checked_at ?? 0)) >= everyMs;
}

// Why an instance that runs is not healthy, with what can be done about it.

/** Asks the engine what the program listens on, if that is the question. */
export async function whyNotHealthy(
  context: Pick<ReconcileContext, 'db' | 'health'>,
  engine: Engine,
  row: InstanceRow,
): Promise<Failure> {
  const check = context.health.lastCheckOf(row.id)?.result ?? null;
  if (!check || (!check.ok && check.fault === 'bad_answer')) return notHealthy(check, null, null);
  // Where the engine does not say, the check alone has to do.
  const { port, listening } = await readListening(context, engine, row);
  return notHealthy(check, port, listening);
}

// What the program of an instance listens on, where its engine can tell.

interface ListeningPorts {
  /** The one it should listen on; null: the revision is gone. */
  port: number | null;
  /** null: not known. */
  listening: Listening;
}

async function readListening(
  { db }: Pick<ReconcileContext, 'db'>,
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
 * Whether an instance that accepts connections may be believed. Docker's proxy accepts them for a program that does not
 * listen, and on a busy machine it takes its time to close them.
 */
export async function listens(
  context: Pick<ReconcileContext, 'db'>,
  engine: Pick<Engine, 'listening' | 'list'>,
  row: InstanceRow,
): Promise<boolean> {
  if (!engine.listening) return true;
  const { port, listening } = await readListening(context, engine, row);
  if (port === null) return true;
  // Of one that is known to have ended nothing can be told either, and it listens nowhere.
  return listening ? listening.open.includes(port) : runs(engine, row.id);
}

async function runs(engine: Pick<Engine, 'list'>, instance: string): Promise<boolean> {
  const found = await engine.list().catch(() => []);
  return found.some(({ id, state }) => id === instance && state === 'running');
}
