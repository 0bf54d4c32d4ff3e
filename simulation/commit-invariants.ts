// What holds for every commit: of deployments and revisions, of events and deliveries, of traffic and instances. The
// judge asks everything that is exported here.
import type { DeploymentState } from '../src/contract/deployments.ts';
import { type CommitInvariant, environmentOf, type Facts, firstOf, type OfEnvironment } from './facts.ts';

export const oneInProgress: CommitInvariant = {
  name: 'one deployment in progress per environment',
  tables: ['deployment'],
  check({ after }) {
    const busy = new Map<string, string>();
    return firstOf(after.deployment, (row) => {
      if (row.finished_at !== null) return null;
      const key = environmentOf(row);
      const other = busy.get(key);
      busy.set(key, row.id);
      return other === undefined ? null : `${other} and ${row.id} are in progress in ${key}`;
    });
  },
};

const steps: Record<DeploymentState, readonly DeploymentState[]> = {
  queued: ['preparing', 'canceled', 'failed'],
  preparing: ['preparing', 'starting', 'failed', 'aborting'],
  starting: ['starting', 'canary', 'promoting', 'failed', 'aborting'],
  canary: ['canary', 'promoting', 'aborting'],
  promoting: ['succeeded', 'aborting'],
  aborting: ['failed', 'canceled'],
  succeeded: [],
  failed: [],
  canceled: [],
};

/** A group of transactions that are committed together may take several steps. */
const canReach = (from: DeploymentState, to: DeploymentState, count: number): boolean =>
  count === 1 ? steps[from].includes(to) : steps[from].some((next) => canReach(next, to, count - 1));

export const onlyLegalSteps: CommitInvariant = {
  name: 'a deployment takes only the steps of its diagram',
  tables: ['deployment'],
  check({ before, after }) {
    const known = new Map(before.deployment.map((row) => [row.id, row]));
    return firstOf(after.deployment, (row) => {
      const earlier = known.get(row.id);
      if (!earlier) return row.state === 'queued' ? null : `${row.id} begins as ${row.state}`;
      if (earlier.version === row.version) return null;
      if (row.version < earlier.version) return `the version of ${row.id} went back`;
      const isLegal = canReach(earlier.state, row.state, row.version - earlier.version);
      return isLegal ? null : `${row.id} went from ${earlier.state} to ${row.state}`;
    });
  },
};

const endEvents = new Set(['deployment.succeeded', 'deployment.failed']);

export const oneEndEvent: CommitInvariant = {
  name: 'exactly one end event per deployment',
  tables: ['deployment', 'event'],
  check({ after }) {
    const ends = new Map<string, number>();
    for (const { type, deployment } of after.event) {
      if (deployment !== null && endEvents.has(type)) ends.set(deployment, (ends.get(deployment) ?? 0) + 1);
    }
    return firstOf(after.deployment, ({ id, state, finished_at }) => {
      const count = ends.get(id) ?? 0;
      return count === (finished_at === null ? 0 : 1) ? null : `${id} is ${state} and has ${count} end events`;
    });
  },
};

export const timelinesWithoutGaps: CommitInvariant = {
  name: 'timelines without gaps',
  tables: ['deployment_timeline'],
  check({ after }) {
    let current = '';
    let expected = 1;
    return firstOf(after.deployment_timeline, ({ deployment_id, seq }) => {
      expected = deployment_id === current ? expected + 1 : 1;
      current = deployment_id;
      return seq === expected ? null : `entry ${seq} of ${deployment_id} follows ${expected - 1}`;
    });
  },
};

export const oneActiveRevision: CommitInvariant = {
  name: 'one active revision per environment',
  tables: ['revision'],
  check({ after }) {
    const active = new Set<string>();
    return firstOf(after.revision, (row) => {
      if (row.state !== 'active') return null;
      const key = environmentOf(row);
      if (active.has(key)) return `${key} has two active revisions`;
      active.add(key);
      return null;
    });
  },
};

export const sequencesWithoutGaps: CommitInvariant = {
  name: 'sequences without gaps',
  tables: ['event', 'project'],
  check({ after }) {
    const last = new Map<string, number>();
    const gap = firstOf(after.event, ({ id, project_id, sequence }) => {
      const expected = (last.get(project_id) ?? 0) + 1;
      last.set(project_id, sequence);
      return sequence === expected ? null : `${id} has the number ${sequence} in ${project_id}, not ${expected}`;
    });
    if (gap !== null) return gap;
    return firstOf(after.project, ({ id, next_sequence }) =>
      next_sequence === (last.get(id) ?? 0) + 1 ? null : `${id} goes on with ${next_sequence} after ${last.get(id)}`,
    );
  },
};

export const strictPositionsWithoutGaps: CommitInvariant = {
  name: 'no two deliveries of a strict webhook share a position',
  tables: ['delivery'],
  check({ after }) {
    const taken = new Set<string>();
    return firstOf(after.delivery, ({ id, webhook_id, position }) => {
      if (position === 0) return null;
      const place = `${webhook_id} ${position}`;
      if (taken.has(place)) return `${id} has the position ${position}, as another delivery of ${webhook_id}`;
      taken.add(place);
      return null;
    });
  },
};

export const sharesSumTo100: CommitInvariant = {
  name: 'shares sum to 100',
  tables: ['revision'],
  check({ after }) {
    const sums = new Map<string, { sum: number; hasActive: boolean }>();
    for (const row of after.revision) {
      const known = sums.get(environmentOf(row)) ?? { sum: 0, hasActive: false };
      known.sum += row.traffic_percent;
      known.hasActive ||= row.state === 'active';
      sums.set(environmentOf(row), known);
    }
    return firstOf(sums, ([key, { sum, hasActive }]) =>
      sum === 100 || (sum === 0 && !hasActive) ? null : `the shares of ${key} sum to ${sum}`,
    );
  },
};

export const allTrafficWithoutRollout: CommitInvariant = {
  name: 'without a deployment in progress the active revision gets all requests',
  tables: ['revision', 'deployment'],
  check({ after }) {
    const busy = new Set(after.deployment.filter((row) => row.finished_at === null).map(environmentOf));
    return firstOf(after.revision, (row) => {
      if (busy.has(environmentOf(row)) || row.traffic_percent === (row.state === 'active' ? 100 : 0)) return null;
      return `r${row.number} of ${environmentOf(row)} is ${row.state} and gets ${row.traffic_percent} %`;
    });
  },
};

const healthyOf = (facts: Facts, of: OfEnvironment) =>
  facts.instance.filter((row) => row.state === 'healthy' && environmentOf(row) === environmentOf(of));

const revisionKey = (of: OfEnvironment, number: number) => `${environmentOf(of)} ${number}`;

const sharesOf = ({ revision }: Facts): Map<string, number> =>
  new Map(revision.map((row) => [revisionKey(row, row.number), row.traffic_percent]));

export const sharesNameWhatServes: CommitInvariant = {
  name: 'a share does not rise for a revision without a healthy instance while another has one',
  tables: ['revision'],
  check({ before, after }) {
    const known = sharesOf(before);
    return firstOf(after.revision, (row) => {
      const earlier = known.get(revisionKey(row, row.number)) ?? 0;
      if (row.traffic_percent <= earlier) return null;
      const healthy = healthyOf(after, row);
      if (healthy.length === 0 || healthy.some(({ revision }) => revision === row.number)) return null;
      return `r${row.number} of ${environmentOf(row)} has ${row.traffic_percent} % and no healthy instance`;
    });
  },
};

export const abortsTakeTraffic: CommitInvariant = {
  name: 'a share does not rise for what is being aborted beyond its part of what can serve',
  tables: ['revision'],
  check({ before, after }) {
    const [earlier, now] = [sharesOf(before), sharesOf(after)];
    // A share may rise and the abort come after it, in transactions that are committed together.
    const wasAborting = new Set(before.deployment.filter(({ state }) => state === 'aborting').map(({ id }) => id));
    return firstOf(after.deployment, (row) => {
      const key = revisionKey(row, row.revision);
      const share = now.get(key) ?? 0;
      if (row.state !== 'aborting' || !wasAborting.has(row.id) || share <= (earlier.get(key) ?? 0)) return null;
      const healthy = healthyOf(after, row);
      const own = healthy.filter(({ revision }) => revision === row.revision).length;
      const canServe = healthy.some(({ revision }) => revision === row.previous_revision);
      const isTooMuch = row.cause === 'analysis' || row.cause === 'alert' || share > (100 * own) / healthy.length + 1;
      return canServe && isTooMuch
        ? `r${row.revision} of ${environmentOf(row)} is being aborted and gets ${share} %`
        : null;
    });
  },
};

export const rolloutsKeepWhatServes: CommitInvariant = {
  name: 'a rollout never takes the serving instances below their number',
  tables: ['instance'],
  check({ before, after, leastReplicas }) {
    const known = new Map(before.instance.map((row) => [row.id, row.state]));
    return firstOf(after.instance, (row) => {
      if (row.state !== 'draining' || known.get(row.id) !== 'healthy') return null;
      const key = environmentOf(row);
      const rollout = after.deployment.find((one) => one.finished_at === null && environmentOf(one) === key);
      if (rollout?.previous_revision !== row.revision) return null;
      const replicas = leastReplicas.get(key) ?? 0;
      const serving = healthyOf(after, row).length;
      return serving >= replicas ? null : `${row.id} drains in ${key}: ${serving} of ${replicas} serve`;
    });
  },
};

export const stepsAreJudgedAlone: CommitInvariant = {
  name: 'a step of a canary is judged by its own requests',
  tables: ['deployment'],
  check({ before, after }) {
    const known = new Map(before.deployment.map((row) => [row.id, row]));
    return firstOf(after.deployment, (row) => {
      const earlier = known.get(row.id);
      if (!earlier || row.canary_step === earlier.canary_step || row.step_since !== earlier.step_since) return null;
      return `step ${row.canary_step} of ${row.id} is judged by what was measured since step ${earlier.canary_step} began`;
    });
  },
};

/** Requests that failed, and had none to compare with that did. */
const enoughFailed = 3;

export const failuresAreNotPromoted: CommitInvariant = {
  name: 'a canary of which everything failed, and nothing of stable, is promoted by people only',
  tables: ['deployment'],
  check({ before, after }) {
    const known = new Map(before.deployment.map((row) => [row.id, row]));
    return firstOf(after.deployment, (row) => {
      const earlier = known.get(row.id);
      if (earlier?.state !== 'canary' || row.state !== 'promoting' || earlier.canary_step !== 1) return null;
      const said = after.deployment_timeline.findLast(({ deployment_id }) => deployment_id === row.id);
      if (said?.message.startsWith('Promoted by')) return null;
      const of = (revision: number | null) =>
        before.traffic.find((one) => environmentOf(one) === environmentOf(row) && one.revision === revision);
      const [canary, stable] = [of(row.revision), of(row.previous_revision)];
      if (!canary || canary.requests < enoughFailed || canary.errors < canary.requests || stable?.errors !== 0)
        return null;
      return `${row.id} is promoted, though all ${canary.requests} requests to r${row.revision} failed`;
    });
  },
};

const goesOn = /Moving all traffic|of requests go to the new revision|Waiting for promote/;
const isWorse = /The canary is worse/;
const failedAlone =
  /Too few requests to tell: [1-9][\d,]* of [\d,]+ requests failed.*of the stable revision 0 of [1-9][\d,]* requests failed/;
const heldForErrors = /because only the canary had errors/;

export const verdictsAreKeptTo: CommitInvariant = {
  name: 'what is said of a canary is what is done',
  tables: ['deployment_timeline'],
  check({ before, after }) {
    const known = new Set(before.deployment_timeline.map(({ deployment_id, seq }) => `${deployment_id} ${seq}`));
    return firstOf(after.deployment_timeline, ({ deployment_id, seq, message }) => {
      if (known.has(`${deployment_id} ${seq}`)) return null;
      const isIgnored = isWorse.test(message) && (goesOn.test(message) || heldForErrors.test(message));
      const isOverlooked = failedAlone.test(message) && goesOn.test(message);
      return isIgnored || isOverlooked ? `${deployment_id}: ${message}` : null;
    });
  },
};

export const oneEventPerChangeOfAlert: CommitInvariant = {
  name: 'an alert fires and is resolved with one event each',
  tables: ['alert', 'event'],
  check({ after }) {
    const seen = new Map<string, number>();
    for (const { type, alert } of after.event) {
      if (alert !== null) seen.set(`${alert} ${type}`, (seen.get(`${alert} ${type}`) ?? 0) + 1);
    }
    return firstOf(after.alert, ({ id, resolved_at }) => {
      const fired = seen.get(`${id} alert.fired`) ?? 0;
      const resolved = seen.get(`${id} alert.resolved`) ?? 0;
      const isRight = fired === 1 && resolved === (resolved_at === null ? 0 : 1);
      return isRight ? null : `${id} has ${fired} events for firing and ${resolved} for being resolved`;
    });
  },
};

export const removedUnderTheLease: CommitInvariant = {
  name: 'an instance is removed under the lease of its environment',
  tables: ['instance'],
  check({ before, after, leased }) {
    if (leased !== null || after.environment_lease.length === 0) return null;
    const there = new Set(after.instance.map(({ id }) => id));
    const environments = new Set(
      after.environment
        .filter(({ deleted_at }) => deleted_at === null)
        .map(({ project_id, name }) => environmentOf({ project_id, environment: name })),
    );
    return firstOf(before.instance, (row) => {
      if (there.has(row.id) || !environments.has(environmentOf(row))) return null;
      return `${row.id} of ${environmentOf(row)} was removed without the lease`;
    });
  },
};

export const onlyTheHolderActs: CommitInvariant = {
  name: 'only the holder of the lease changes instances, and what else is changed under it',
  tables: ['instance', 'revision', 'deployment'],
  check({ before, after, by, leased }) {
    const known = new Map(before.instance.map((row) => [row.id, row]));
    const holders = new Map(after.environment_lease.map((row) => [environmentOf(row), row.owner]));
    const holderNow = leased && holders.get(environmentOf(leased));
    if (leased && holderNow !== by) return `${by} wrote for ${environmentOf(leased)}; ${holderNow} has the lease`;
    return firstOf(after.instance, (row) => {
      if (known.get(row.id)?.state === row.state) return null;
      // The first process to see that an instance is not where it was takes it out of the routing table.
      if (row.state === 'unhealthy') return null;
      const holder = holders.get(environmentOf(row));
      return holder === undefined || holder === by
        ? null
        : `${by} made ${row.id} ${row.state}; ${holder} has the lease`;
    });
  },
};
