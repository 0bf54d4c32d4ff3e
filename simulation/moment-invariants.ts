// What holds at a moment: when a delivery arrives, when an instance is stopped, after every step, and once everything has
// calmed down. Each gives what is wrong, or null.
import { kindOf, type SimulatedInstance } from './engine.ts';
import { type Commit, type DeliveryFact, type EventFact, environmentOf, type Facts, firstOf } from './facts.ts';
import type { Arrival, Receivers } from './receivers.ts';
import { revisionOf } from './visits.ts';

/** What arrives is what was stored with the event, every time. */
export function arrivedWithEqualBytes(
  arrival: Arrival,
  delivery: DeliveryFact | undefined,
  event: EventFact | undefined,
  { byDelivery }: Pick<Receivers, 'byDelivery'>,
): string | null {
  const first = byDelivery.get(arrival.delivery)?.[0];
  if (first && first.body !== arrival.body) return `${arrival.delivery} arrived with two bodies`;
  // Its webhook was deleted, and the delivery with it, after it was claimed.
  if (!delivery) return null;
  const stored = delivery.test_body ?? event?.body;
  return stored === arrival.body ? null : `${arrival.delivery} arrived with other bytes than its event has`;
}

/** While an earlier delivery of a strict webhook is pending, no later one is sent for the first time. */
export function overtakes(arrival: Arrival, facts: Facts): string | null {
  const delivery = facts.delivery.find(({ id }) => id === arrival.delivery);
  if (!delivery || delivery.position === 0 || delivery.state !== 'pending') return null;
  const earlier = facts.delivery.find(
    (one) => one.webhook_id === delivery.webhook_id && one.state === 'pending' && one.position < delivery.position,
  );
  return earlier ? `${delivery.id} arrived before ${earlier.id}` : null;
}

export function findUnsentSuccess(
  { before, after }: Commit,
  { byDelivery }: Pick<Receivers, 'byDelivery'>,
): string | null {
  const known = new Map(before.delivery.map(({ id, state }) => [id, state]));
  return firstOf(after.delivery, ({ id, state }) => {
    if (state !== 'succeeded' || known.get(id) === state) return null;
    const arrived = byDelivery.get(id)?.some(({ status }) => status === 200);
    return arrived ? null : `${id} is marked as delivered and no receiver has it`;
  });
}

/** A router whose process is up. */
export interface LiveRouter {
  name: string;
  targets: ReadonlySet<string>;
  /** When each instance left its table. */
  leftAt: ReadonlyMap<string, number>;
  /** Its last heartbeat, and since when no two of them were further apart than its lease. */
  beatAt: number;
  liveSince: number;
  /** Since when no fault has touched its process. */
  calmSince: number;
  /** The instance that it sends visitors to at this address. */
  targetAt(host: string, port: number): string | undefined;
}

interface Stopped {
  instance: SimulatedInstance;
  facts: Facts;
  routers: readonly LiveRouter[];
  /** A router that was not heard of for this long does not count. */
  leaseMs: number;
  nowMs: number;
  /** Since when it is to be stopped; null: it is not draining. */
  drainingSince: number | null;
  /** Those that finish have this long for their requests; the least that the environment was set to lately. */
  drainMs: number;
}

/** An instance that has ended serves nobody, nor does a deleted environment. */
export function isStoppedTooEarly(stopped: Stopped): string | null {
  const { instance, facts, nowMs, drainingSince, drainMs } = stopped;
  if (instance.state !== 'running') return null;
  const { id, project, environment } = instance.spec;
  const key = environmentOf({ project_id: project, environment });
  if (!facts.environment.some((row) => `${row.project_id} ${row.name}` === key)) return null;
  const counted = stopped.routers.filter((router) => counts(router, stopped));
  const routed = counted.find(({ targets }) => targets.has(id));
  if (routed) return `${id} is stopped while ${routed.name} routes to it`;
  if (drainingSince === null) return null;
  const leftAt = Math.max(...counted.map((router) => router.leftAt.get(id) ?? Number.NEGATIVE_INFINITY));
  return nowMs - leftAt < drainMs ? `${id} had ${Math.round(nowMs - leftAt)} of ${drainMs} ms to finish` : null;
}

/** One that was silent for longer than its lease meanwhile has not been waited for. */
const counts = ({ beatAt, liveSince }: LiveRouter, { nowMs, leaseMs, drainingSince }: Stopped): boolean =>
  nowMs - beatAt < leaseMs && (drainingSince === null || liveSince <= drainingSince);

/** Routers ask for changes every second, and have them in force up to three seconds later. */
const unroutedWithinMs = 8000;

/** `unfitSince`: when instances stopped being healthy. A router that no fault has touched since then does not send visitors there. */
export function findRoutedUnfit(
  { name, targets, calmSince }: Pick<LiveRouter, 'name' | 'targets' | 'calmSince'>,
  unfitSince: ReadonlyMap<string, number>,
  nowMs: number,
): string | null {
  return firstOf(targets, (id) => {
    const since = unfitSince.get(id);
    if (since === undefined) return null;
    const ms = nowMs - Math.max(since, calmSince);
    return ms > unroutedWithinMs
      ? `${name} routes to ${id}, which has not been healthy for ${Math.round(ms)} ms`
      : null;
  });
}

/** Three checks a second apart, each with a time limit of one, and the pass that writes what they say. */
const toldSickWithinMs = 10_000;

/** `sickForMs`: how long an instance has failed every health check; `checksSince`: since when no fault touched who checks. */
export function findUntoldSick(
  { instance }: Pick<Facts, 'instance'>,
  sickForMs: (id: string) => number,
  checksSince: number,
  nowMs: number,
): string | null {
  return firstOf(instance, ({ id, state }) => {
    const ms = Math.min(sickForMs(id), nowMs - checksSince);
    return state === 'healthy' && ms > toldSickWithinMs
      ? `${id} is healthy, and has failed its health check for ${Math.round(ms)} ms`
      : null;
  });
}

/** Ports of instances that are gone are not given to others for five minutes. */
const portRestsMs = 5 * 60_000 - 15_000;

/** Who had each port, and when that one was last there. */
export type PortHistory = Map<number, { instance: string; thereAt: number }>;

/** Notes who has which port; gives what was reused too early. */
export function findReusedPort({ instance, instance_port }: Facts, history: PortHistory, nowMs: number): string | null {
  const there = new Set(instance.map(({ id }) => id));
  return firstOf(instance_port, ({ port, instance_id }) => {
    const before = history.get(port);
    if (there.has(instance_id)) history.set(port, { instance: instance_id, thereAt: nowMs });
    if (before === undefined || before.instance === instance_id || nowMs - before.thereAt >= portRestsMs) return null;
    return `${instance_id} has port ${port}, which ${before.instance} had ${Math.round(nowMs - before.thereAt)} ms ago`;
  });
}

/** No more requests are stored than visitors have sent. */
export const findCountedTwice = ({ traffic }: Facts, sent: ReadonlyMap<string, number>): string | null =>
  firstOf(traffic, (row) => {
    const all = sent.get(revisionOf(row, row.revision)) ?? 0;
    const of = `r${row.revision} of ${environmentOf(row)}`;
    return row.requests <= all ? null : `${row.requests} requests are stored of ${of}, and ${all} were sent`;
  });

/** A sweep every ten seconds, every second while routers are waited for, and the time that the sweep itself takes. */
const sweptWithinMs = 17_000;

interface Sweeper {
  calmSince: number;
}

/**
 * Every control process sweeps, so one that works is enough. `upSince`: when the last engine came back; `leaseMs`: of the
 * routers, which are waited for.
 */
export function findOldOrphan(
  orphanSince: ReadonlyMap<string, number>,
  sweepers: readonly Sweeper[],
  upSince: number,
  leaseMs: number,
  nowMs: number,
): string | null {
  const worksSince = Math.max(upSince, Math.min(...sweepers.map(({ calmSince }) => calmSince)));
  return firstOf(orphanSince, ([id, since]) => {
    const ms = nowMs - Math.max(since, worksSince);
    return ms > sweptWithinMs + leaseMs ? `${id} has run without a row for ${Math.round(ms)} ms` : null;
  });
}

/** The lease of another process runs out after 20 s, and the search finds the deployment within a second. */
const noticedWithinMs = 30_000;

/** `deadlines`: by deployment; `calmSince`: when a fault last touched any control process. */
export function findLateRollout(
  { deployment }: Facts,
  deadlines: ReadonlyMap<string, number>,
  calmSince: number,
  nowMs: number,
): string | null {
  return firstOf(deployment, ({ id, state, finished_at }) => {
    const deadline = deadlines.get(id);
    if (finished_at !== null || deadline === undefined) return null;
    const lateMs = nowMs - Math.max(deadline, calmSince);
    return lateMs > noticedWithinMs ? `${id} is ${state}, ${Math.round(lateMs)} ms after its deadline` : null;
  });
}

interface Calm {
  facts: Facts;
  /** What the engines have, by id. */
  instances: ReadonlyMap<string, SimulatedInstance>;
  sets: ReadonlySet<string>;
  routers: readonly { name: string; targets: ReadonlySet<string> }[];
}

/** What has not calmed down yet, some time after the last fault; null: everything is as it should be. */
export function findUnrest(calm: Calm): string | null {
  return (
    unfinished(calm) ?? undelivered(calm) ?? orphaned(calm) ?? setsNotKept(calm) ?? notKept(calm) ?? notRouted(calm)
  );
}

function unfinished({ facts }: Calm): string | null {
  const rollout = facts.deployment.find(({ finished_at }) => finished_at === null);
  return rollout ? `${rollout.id} is ${rollout.state}` : null;
}

function undelivered({ facts }: Calm): string | null {
  const enabled = new Set(facts.webhook.filter(({ state }) => state === 'enabled').map(({ id }) => id));
  const delivery = facts.delivery.find(({ state, webhook_id }) => state === 'pending' && enabled.has(webhook_id));
  return delivery ? `${delivery.id} is not delivered` : null;
}

function orphaned({ facts, instances, sets }: Calm): string | null {
  const known = new Set([...facts.instance, ...facts.instance_set].map(({ id }) => id));
  return firstOf([...instances.keys(), ...sets], (id) => (known.has(id) ? null : `${id} has no row`));
}

/** The set of each active revision, and no others. */
function setsNotKept({ facts }: Calm): string | null {
  return firstOf(facts.instance_set, (set) => {
    const isActive = ({ state, number }: Facts['revision'][number]) => state === 'active' && number === set.revision;
    const isUsed = facts.revision.some((row) => isActive(row) && environmentOf(row) === environmentOf(set));
    return isUsed ? null : `${set.id} of r${set.revision} of ${environmentOf(set)} is still there`;
  });
}

/** As many instances of the active revision as the environment should have, all healthy, and no others. */
function notKept({ facts, instances }: Calm): string | null {
  return firstOf(facts.environment, ({ project_id, name, replicas }) => {
    const key = environmentOf({ project_id, environment: name });
    const active = facts.revision.find((row) => row.state === 'active' && environmentOf(row) === key);
    const rows = facts.instance.filter((row) => environmentOf(row) === key);
    if (!active) return rows.length === 0 ? null : `${key} has instances and no active revision`;
    // Its instances come and go for ever, or none can be started any more.
    if (['crash', 'gone', 'sickens'].includes(kindOf(active.image))) return null;
    const good = rows.filter(({ id, state, revision }) => {
      const isRunning = instances.get(id)?.state === 'running';
      return isRunning && state === 'healthy' && revision === active.number;
    });
    const isKept = good.length === replicas && rows.length === replicas;
    return isKept ? null : `${key} has ${good.length} good instances of ${rows.length}, and should have ${replicas}`;
  });
}

/** Every router sends visitors to the healthy instances of the revisions that have a share, and to no others. */
function notRouted({ facts, routers }: Calm): string | null {
  const shared = new Set(
    facts.revision.filter((row) => row.traffic_percent > 0).map((row) => `${environmentOf(row)} ${row.number}`),
  );
  const wanted = facts.instance
    .filter((row) => row.state === 'healthy' && shared.has(`${environmentOf(row)} ${row.revision}`))
    .map(({ id }) => id);
  return firstOf(routers, ({ name, targets }) =>
    targets.size === wanted.length && wanted.every((id) => targets.has(id)) ? null : `${name} routes by an old table`,
  );
}
