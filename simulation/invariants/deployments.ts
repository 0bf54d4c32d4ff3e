import type { DeploymentState } from '../../src/contract/deployments.ts';
import { type CommitInvariant, environmentOf, firstOf } from './commit.ts';

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
