import type { Facts, Table } from '../facts.ts';

/** What the database said before a commit and after it. */
export interface Commit {
  before: Facts;
  after: Facts;
  /** The id of the process that committed it. */
  by: string;
  /** The environment whose lease it was made under; null: it needed none. */
  leased: OfEnvironment | null;
  /** The lowest number of replicas that an environment was set to lately: a reconcile pass may have begun before a change. */
  leastReplicas: ReadonlyMap<string, number>;
}

/** Holds for every commit that touches one of the tables. `check` gives what is wrong, or null. */
export interface CommitInvariant {
  name: string;
  tables: readonly Table[];
  check: (commit: Commit) => string | null;
}

export interface OfEnvironment {
  project_id: string;
  environment: string;
}

export const environmentOf = ({ project_id, environment }: OfEnvironment): string => `${project_id} ${environment}`;

/** The first complaint about any of the items. */
export function firstOf<T>(items: Iterable<T>, complain: (item: T) => string | null): string | null {
  for (const item of items) {
    const complaint = complain(item);
    if (complaint !== null) return complaint;
  }
  return null;
}
