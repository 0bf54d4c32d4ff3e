import { kindOf, type SimulatedInstance } from '../engine.ts';
import type { Facts } from '../facts.ts';
import { environmentOf, firstOf } from './commit.ts';

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
    // Its instances come and go for ever.
    if (kindOf(active.image) === 'crash') return null;
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
