// What the database holds, read again where a commit has changed it, and the commit itself. The invariants see this,
// never the database.
import type { CompiledQuery } from 'kysely';
import type { Handle } from '../src/db/sqlite-writer.ts';
import type { DeploymentRow, RevisionRow } from '../src/deployments/deployment-queries.ts';
import type { InstanceRow } from '../src/deployments/instance-queries.ts';
import type { EnvironmentRow } from '../src/environments/environment-queries.ts';

export interface EventFact {
  id: string;
  project_id: string;
  type: string;
  sequence: number;
  body: string;
  /** Of deployment.… events. */
  deployment: string | null;
  /** Of alert.… events. */
  alert: string | null;
}

export interface DeliveryFact {
  id: string;
  webhook_id: string;
  event_id: string;
  state: string;
  position: number;
  test_body: string | null;
}

interface WebhookFact {
  id: string;
  state: string;
  ordering: string;
  description: string | null;
  version: number;
}

export interface Facts {
  project: readonly { id: string; name: string; next_sequence: number; version: number }[];
  environment: readonly EnvironmentRow[];
  deployment: readonly DeploymentRow[];
  revision: readonly RevisionRow[];
  instance: readonly InstanceRow[];
  instance_set: readonly { id: string; project_id: string; environment: string; revision: number }[];
  environment_lease: readonly { project_id: string; environment: string; owner: string; until: number }[];
  webhook: readonly WebhookFact[];
  delivery: readonly DeliveryFact[];
  deployment_timeline: readonly { deployment_id: string; seq: number; message: string }[];
  alert: readonly { id: string; resolved_at: number | null }[];
  instance_port: readonly { port: number; instance_id: string }[];
  /** What all routers have stored of each revision. */
  traffic: readonly { project_id: string; environment: string; revision: number; requests: number; errors: number }[];
  /** All of them, oldest first. */
  event: readonly EventFact[];
}

export type Table = keyof Facts;

const reading: Record<Exclude<Table, 'event'>, string> = {
  project: 'select id, name, next_sequence, version from project order by id',
  environment: 'select * from environment order by project_id, name',
  deployment: 'select * from deployment order by id',
  revision: 'select * from revision order by project_id, environment, number',
  instance: 'select * from instance order by id',
  instance_set: 'select * from instance_set order by id',
  environment_lease: 'select * from environment_lease order by project_id, environment',
  webhook: 'select id, state, ordering, description, version from webhook order by id',
  delivery: 'select id, webhook_id, event_id, state, position, test_body from delivery order by id',
  deployment_timeline: 'select deployment_id, seq, message from deployment_timeline order by deployment_id, seq',
  alert: 'select id, resolved_at from alert order by id',
  instance_port: 'select port, instance_id from instance_port order by port',
  traffic: `select project_id, environment, revision, sum(requests) as requests, sum(errors) as errors from traffic
    group by project_id, environment, revision order by project_id, environment, revision`,
};

export const noFacts: Facts = {
  project: [],
  environment: [],
  deployment: [],
  revision: [],
  instance: [],
  instance_set: [],
  environment_lease: [],
  webhook: [],
  delivery: [],
  deployment_timeline: [],
  alert: [],
  instance_port: [],
  traffic: [],
  event: [],
};

/** Rows of these go with others that are deleted. */
const cascading = ['project', 'environment'];
const cascade: readonly Table[] = [
  'environment',
  'deployment',
  'revision',
  'instance',
  'instance_set',
  'deployment_timeline',
  'alert',
  'traffic',
];

export class FactReader {
  readonly #committed: Handle;
  readonly #events: EventFact[] = [];
  #lastEvent = 0;

  /** `committed`: a connection that sees what is committed. */
  constructor(committed: Handle) {
    this.#committed = committed;
  }

  /** The facts after a commit that wrote to these tables, and which of them it may have changed. */
  read(before: Facts, written: ReadonlySet<string>): { facts: Facts; changed: Set<Table> } {
    const tables = new Set([...written].filter((name): name is Table => name in noFacts));
    if (cascading.some((name) => written.has(name))) for (const name of cascade) tables.add(name);
    const facts: Record<string, unknown> = { ...before };
    for (const name of tables) {
      if (name === 'event') facts.event = this.#readEvents();
      else facts[name] = this.#rows(reading[name]);
    }
    return { facts: facts as unknown as Facts, changed: tables };
  }

  #readEvents(): readonly EventFact[] {
    const rows = this.#rows<EventFact & { place: number }>(
      `select rowid as place, id, project_id, type, sequence, body, null as deployment, null as alert from event
        where rowid > ? order by rowid`,
      this.#lastEvent,
    );
    for (const { place, ...event } of rows) {
      this.#lastEvent = place;
      if (event.type.startsWith('deployment.')) event.deployment = JSON.parse(event.body).data.id;
      if (event.type.startsWith('alert.')) event.alert = JSON.parse(event.body).data.id;
      this.#events.push(event);
    }
    return [...this.#events];
  }

  #rows<R>(sql: string, ...parameters: unknown[]): R[] {
    return this.#committed.run<R>({ sql, parameters } as unknown as CompiledQuery).rows;
  }
}

/** What the database held before a commit and after it. */
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
