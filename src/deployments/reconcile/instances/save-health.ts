// The health of an environment, as its rows say. It is written where it changed: so it says since when, and lists of
// environments and projects show it without counting instances.
import { revisionId } from '../../../contract/revision-id.ts';
import { setHealth } from '../../../environments/queries.ts';
import { findLastEnd } from '../../instance-ends.ts';
import { asksForEnds, type EnvironmentHealth, healthOf, type Serving } from '../../rules/environment-health.ts';
import type { Observation, ReconcileContext } from '../context.ts';
import { publishChange } from './publish-change.ts';

const maxReason = 2000;

export async function saveHealth(context: ReconcileContext, seen: Observation): Promise<void> {
  const { environment, key } = seen;
  const nowMs = context.lasting.now();
  const { state, reason } = await judge(context, seen, nowMs);
  const health_reason = reason?.slice(0, maxReason) ?? null;
  const hasTurned = state !== environment.health_state;
  if (!hasTurned && health_reason === environment.health_reason) return;
  const health_since = hasTurned ? nowMs : environment.health_since;
  await context.lease.write(async (tx) => {
    await setHealth(tx, environment, { health_state: state, health_since, health_reason });
    await publishChange(tx, key);
  });
}

async function judge({ db }: ReconcileContext, seen: Observation, nowMs: number): Promise<EnvironmentHealth> {
  const { active, key } = seen;
  const serving = servingOf(seen);
  const health = healthOf(serving, nowMs);
  if (!active || !asksForEnds(health)) return health;
  return healthOf({ ...serving, lastEnd: (await findLastEnd(db, key, active.number)) ?? null }, nowMs);
}

/** A revision that is being rolled out counts from its first requests on. */
function servingOf({ active, rollout, environment, instances }: Observation): Serving {
  const fresh = rollout?.fresh;
  const isServing = (revision: number) =>
    revision === active?.number || (revision === fresh?.number && fresh.traffic_percent > 0);
  return {
    active: active && revisionId(active.number),
    replicas: environment.replicas,
    instances: instances.filter((row) => isServing(row.revision) && row.state !== 'draining'),
    lastEnd: null,
  };
}
