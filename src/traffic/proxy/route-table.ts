// The routing table as requests use it: with instances that have connections, and counters. An instance that is also in
// the next table keeps its connections; one that is not closes them once its last request has ended.
import { createBuckets, seesCanary } from '../balance.ts';
import { RevisionCounter, type TrafficCounter } from '../measure/traffic-counter.ts';
import type { Route, RoutingTable, Target } from '../table.ts';
import { Instance } from './instance.ts';
import type { ProxyLimits } from './limits.ts';

/** One revision of a route, with the instances that answer for it. */
export interface Backend {
  revision: number;
  percent: number;
  instances: Instance[];
  counter: RevisionCounter;
  /** Index of the instance that is asked next where several are equally busy. */
  turn: number;
}

/** For an environment where nothing is live yet. */
const emptyBackend = (): Backend => ({
  revision: 0,
  percent: 100,
  instances: [],
  counter: new RevisionCounter('', '', 0),
  turn: 0,
});

export interface ProxyRoute {
  stable: Backend;
  canary: Backend | null;
  /** Its hosts have a certificate. */
  secure: boolean;
  nextBucket: () => number;
}

/** The backend that a visitor's bucket belongs to. */
export const backendOf = ({ stable, canary }: ProxyRoute, bucket: number): Backend =>
  canary !== null && seesCanary(bucket, canary.revision, canary.percent) ? canary : stable;

export class RouteTable {
  #routes = new Map<string, ProxyRoute>();
  #instances = new Map<string, Instance>();
  /** By environment: a new table goes on where the last one was. */
  #bucketSequences = new Map<string, () => number>();
  readonly #retiring = new Set<Instance>();
  readonly #limits: ProxyLimits;
  readonly #counter: TrafficCounter;

  constructor(limits: ProxyLimits, counter: TrafficCounter) {
    this.#limits = limits;
    this.#counter = counter;
  }

  find(host: string): ProxyRoute | undefined {
    return this.#routes.get(host);
  }

  apply(table: RoutingTable): void {
    const instances = this.#instances;
    const sequences = this.#bucketSequences;
    const routes = new Map<string, ProxyRoute>();
    this.#instances = new Map();
    this.#bucketSequences = new Map();
    this.#counter.beginTable();
    const built = new Map<Route, ProxyRoute>(); // an environment may have a thousand hosts
    for (const [host, route] of table) {
      const proxyRoute = built.get(route) ?? this.#build(route, instances, sequences);
      built.set(route, proxyRoute);
      routes.set(host.toLowerCase(), proxyRoute);
    }
    this.#routes = routes;
    for (const [key, instance] of instances) if (!this.#instances.has(key)) this.#retire(instance);
  }

  #retire(instance: Instance): void {
    this.#retiring.add(instance);
    void instance.retire().then(() => this.#retiring.delete(instance));
  }

  #build(route: Route, instances: Map<string, Instance>, sequences: Map<string, () => number>): ProxyRoute {
    const { project, environment } = route;
    const backends = route.shares.map(({ revision, percent, targets }) => ({
      revision,
      percent,
      instances: targets.map((target) => this.#instanceAt(target, instances)),
      counter: this.#counter.of(project, environment, revision),
      turn: 0,
    }));
    const key = `${project}/${environment}`;
    // Spreading visitors evenly needs no secret, only a start that differs from process to process.
    const nextBucket = this.#bucketSequences.get(key) ?? sequences.get(key) ?? createBuckets(Math.random());
    this.#bucketSequences.set(key, nextBucket);
    const [stable = emptyBackend(), canary = null] = backends;
    return { stable, canary, secure: route.secure === true, nextBucket };
  }

  #instanceAt(target: Target, previous: Map<string, Instance>): Instance {
    const key = `${target.instance} ${target.host} ${target.port}`;
    const instance = this.#instances.get(key) ?? previous.get(key) ?? new Instance(target, this.#limits);
    this.#instances.set(key, instance);
    return instance;
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#instances.values(), ...this.#retiring].map((instance) => instance.destroy()));
  }
}
