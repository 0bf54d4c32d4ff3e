import type { Facts } from '../facts.ts';
import { type CommitInvariant, environmentOf, firstOf, type OfEnvironment } from './commit.ts';

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
  name: 'a share does not rise for what is being aborted while what was there before can serve',
  tables: ['revision'],
  check({ before, after }) {
    const [earlier, now] = [sharesOf(before), sharesOf(after)];
    // A share may rise and the abort come after it, in transactions that are committed together.
    const wasAborting = new Set(before.deployment.filter(({ state }) => state === 'aborting').map(({ id }) => id));
    return firstOf(after.deployment, (row) => {
      const key = revisionKey(row, row.revision);
      const share = now.get(key) ?? 0;
      if (row.state !== 'aborting' || !wasAborting.has(row.id) || share <= (earlier.get(key) ?? 0)) return null;
      const canServe = healthyOf(after, row).some(({ revision }) => revision === row.previous_revision);
      return canServe ? `r${row.revision} of ${environmentOf(row)} is being aborted and gets ${share} %` : null;
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
