// One look at an environment: observe → decide → save → act.
//
// A look that decides a step only saves it; the next look, which follows at once, reads what was saved and acts on it. So
// nothing is started, drained or given traffic for a state that is not in the database, and a crash at any point only
// means that the next look comes later, from this process or another. For the same reason a step that says how things are
// ("It serves all traffic.") is decided by the look after the one that made them so.
import type { EnvironmentKey } from '../../environments/key.ts';
import type { DeploymentRow } from '../queries.ts';
import { decide, routersGetMs } from '../rules/rollout.ts';
import { countInstances, desiredFor, percentsOf, policyOf, rolloutOf } from '../rules/situation.ts';
import { saveStep } from '../save-step.ts';
import { moveTraffic } from '../shares.ts';
import type { Observation, ReconcileContext } from './context.ts';
import { saveHealth } from './instances/save-health.ts';
import { type DesiredSet, keepInstances } from './keeper.ts';
import { readLogTail } from './log-tail.ts';
import { mendRollout } from './mend-times.ts';
import { observe, observeRollout } from './observe.ts';

export const busyEveryMs = 300;
/** Where only the routers are waited for, which take a moment. */
const routersEveryMs = 50;
export const idleEveryMs = 10_000;

/** In how many milliseconds to look again; idle: not until something changes; gone: the environment was deleted. */
export type NextLook = number | 'idle' | 'gone';

export async function reconcile(context: ReconcileContext, key: EnvironmentKey): Promise<NextLook> {
  const seen = await observe(context, key);
  if (!seen) return 'gone';
  await saveHealth(context, seen);
  if (!seen.rollout) return keepActive(context, seen);

  const { deployment, fresh } = seen.rollout;
  const { environment, active, instances } = seen;
  const policy = { ...policyOf(environment, fresh), pullTimeoutS: context.pullTimeoutS };
  if (await mendRollout(context, deployment, policy)) return 0;
  const desired = desiredFor(deployment, environment.replicas, countInstances(instances, deployment));
  const observed = await observeRollout(context, seen, seen.rollout, desired);
  const step = decide(rolloutOf(deployment, policy), observed, policy, context.lasting.now());
  if (step) {
    const logTail = step.failure ? await failureLog(context, seen, deployment) : [];
    await context.lease.write((tx) =>
      saveStep(tx, context, environment, deployment, step, percentsOf(deployment, policy), { logTail, instances }),
    );
    if (step.to !== 'preparing') context.images.forget(key);
    return 0;
  }

  const moved = await moveTraffic(context.lease.write, deployment, fresh, active, desired.freshPercent, instances);
  const sets: DesiredSet[] = [{ revision: fresh, instances: desired.fresh }];
  if (active) sets.push({ revision: active, instances: desired.previous });
  const changed = await keepInstances(context, seen, sets);
  if (moved || changed) return 0;
  const behind = observed.routersBehind;
  return behind && context.lasting.now() < behind.since + routersGetMs ? routersEveryMs : busyEveryMs;
}

async function keepActive(context: ReconcileContext, seen: Observation): Promise<NextLook> {
  const { active, environment, instances, sets } = seen;
  const replicas = active ? environment.replicas : 0;
  const changed = await keepInstances(context, seen, active ? [{ revision: active, instances: replicas }] : []);
  if (!active && instances.length === 0 && sets.length === 0) return 'idle';
  const isCalm = !changed && instances.length === replicas && instances.every(({ state }) => state === 'healthy');
  return isCalm ? idleEveryMs : busyEveryMs;
}

/** What an instance that failed wrote last; else what one that runs did. */
async function failureLog(
  { crashes }: ReconcileContext,
  { key, instances, region }: Observation,
  { revision }: DeploymentRow,
): Promise<string[]> {
  const kept = crashes.logTailOf(key, revision);
  const instance = instances.find((row) => row.revision === revision);
  return kept.length > 0 || !instance || !region ? kept : readLogTail(region.engine, instance.id);
}
