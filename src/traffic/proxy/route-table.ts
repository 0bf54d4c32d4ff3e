// The routing table as requests use it: with instances that have connections, and counters; and which instance gets the
// next request. It changes by environment. An instance that stays in its environment keeps its connections; one that
// leaves closes them once its last request has ended.
import { type Candidate, createBuckets, pickCandidate, seesCanary } from '../balance.ts';
import { type EnvironmentRoutes, routesKey, type Target } from '../data-plane.ts';
import { RevisionCounter, type TrafficCounter } from '../measurements.ts';
import { InstanceConnections } from './instance-connections.ts';
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

/** What an environment has in the table. However many hosts it has, it has two routes: for those with a certificate and those without. */
interface Routed {
  routes: EnvironmentRoutes;
  plain: ProxyRoute;
  secure: ProxyRoute;
  backends: Backend[];
  instances: Map<string, Instance>;
  /** The load that last named it. */
  load: number;
}

export class RouteTable {
  readonly #routes = new Map<string, ProxyRoute>();
  readonly #environments = new Map<string, Routed>();
  readonly #retiring = new Set<Instance>();
  readonly #limits: ProxyLimits;
  readonly #counter: TrafficCounter;
  #load = 0;

  constructor(limits: ProxyLimits, counter: TrafficCounter) {
    this.#limits = limits;
    this.#counter = counter;
  }

  find(host: string): ProxyRoute | undefined {
    return this.#routes.get(host);
  }

  /** Environments that are not replaced between this and `endLoad` are dropped by that. */
  beginLoad(): void {
    this.#load++;
  }

  endLoad(): void {
    for (const [key, routed] of this.#environments) if (routed.load !== this.#load) this.#drop(key, routed);
  }

  replace(routes: EnvironmentRoutes): void {
    const key = routesKey(routes);
    const before = this.#environments.get(key);
    if (routes.hosts.length === 0) {
      if (before) this.#drop(key, before);
      return;
    }
    if (before && isSame(before.routes, routes)) {
      before.load = this.#load;
      this.#lead(before); // a host may have been another environment's meanwhile
      return;
    }
    const routed = this.#build(routes, before);
    this.#environments.set(key, routed);
    this.#lead(routed);
    if (before) this.#retire(before, routed);
  }

  #lead({ routes, plain, secure }: Routed): void {
    for (const host of routes.hosts) this.#routes.set(host.name, host.secure ? secure : plain);
  }

  #drop(key: string, routed: Routed): void {
    this.#environments.delete(key);
    this.#retire(routed, null);
  }

  /** Ends what the environment had and has no more. A host that another environment has got meanwhile stays with that. */
  #retire(before: Routed, now: Routed | null): void {
    for (const { name } of before.routes.hosts) {
      const route = this.#routes.get(name);
      if (route === before.plain || route === before.secure) this.#routes.delete(name);
    }
    for (const { counter } of before.backends) {
      if (!now?.backends.some((backend) => backend.counter === counter)) counter.retired = true;
    }
    for (const [key, instance] of before.instances) {
      if (now?.instances.has(key)) continue;
      this.#retiring.add(instance);
      void instance.retire().then(() => this.#retiring.delete(instance));
    }
  }

  #build(routes: EnvironmentRoutes, before: Routed | undefined): Routed {
    const { project, environment, shares } = routes;
    const instances = new Map<string, Instance>();
    const instanceAt = (target: Target): Instance => {
      const key = `${target.instance} ${target.host} ${target.port}`;
      const instance = instances.get(key) ?? before?.instances.get(key) ?? new Instance(target, this.#limits);
      instances.set(key, instance);
      return instance;
    };
    const backends = shares.map(({ revision, percent, targets }) => ({
      revision,
      percent,
      instances: targets.map(instanceAt),
      counter: this.#counter.of(project, environment, revision),
      turn: 0,
    }));
    const [stable = emptyBackend(), canary = null] = backends;
    // Spreading visitors evenly needs no secret, only a start that differs from process to process.
    const nextBucket = before?.plain.nextBucket ?? createBuckets(Math.random());
    const plain = { stable, canary, secure: false, nextBucket };
    return { routes, plain, secure: { ...plain, secure: true }, backends, instances, load: this.#load };
  }

  async destroy(): Promise<void> {
    const current = [...this.#environments.values()].flatMap(({ instances }) => [...instances.values()]);
    await Promise.all([...current, ...this.#retiring].map((instance) => instance.destroy()));
  }
}

/** After a restart of the control process the whole table comes again, nearly all of it as it was. */
const isSame = (one: EnvironmentRoutes, other: EnvironmentRoutes): boolean =>
  areSame(one.hosts, other.hosts, (a, b) => a.name === b.name && a.secure === b.secure) &&
  areSame(
    one.shares,
    other.shares,
    (a, b) => a.revision === b.revision && a.percent === b.percent && areSame(a.targets, b.targets, isSameTarget),
  );

const isSameTarget = (a: Target, b: Target): boolean =>
  a.instance === b.instance && a.host === b.host && a.port === b.port;

const areSame = <T>(some: readonly T[], others: readonly T[], isSameOne: (a: T, b: T) => boolean): boolean =>
  some.length === others.length && some.every((one, i) => isSameOne(one, others[i]!));

function pickFrom(backend: Backend, nowMs: number, tried: readonly Instance[]): Instance | null {
  const { instances } = backend;
  if (instances.length === 1 && tried.length === 0 && instances[0]!.ejectedUntil <= nowMs) return instances[0]!;
  const index = pickCandidate(instances, backend.turn, nowMs, tried);
  if (index === -1) return null;
  backend.turn = index + 1; // from the picked one on, so that a skipped instance does not double its neighbour's share
  return instances[index]!;
}

/**
 * The instance that gets the request: one of the backend that the visitor belongs to or, where none of those can
 * answer, one of the other. Null where every instance was tried. An instance that is in both backends is picked as
 * one of the wanted.
 */
export function chooseInstance(
  wanted: Backend,
  other: Backend | null,
  nowMs: number,
  tried: readonly Instance[],
): Instance | null {
  return (
    pickFrom(wanted, nowMs, tried) ??
    (other && pickFrom(other, nowMs, tried)) ??
    // All that are left are ejected: try one of those rather than none.
    pickFrom(wanted, Number.POSITIVE_INFINITY, tried) ??
    (other && pickFrom(other, Number.POSITIVE_INFINITY, tried))
  );
}

/** An instance behind the proxy, with the connections that are kept to it. */
export class Instance implements Candidate {
  readonly id: string;
  readonly address: { host: string; port: number };
  underWay = 0;
  ejectedUntil = 0;
  readonly #limits: ProxyLimits;
  #connections: InstanceConnections | null = null;

  constructor({ instance, host, port }: Target, limits: ProxyLimits) {
    this.id = instance;
    this.address = { host, port };
    this.#limits = limits;
  }

  /** Created with the first request: most environments of a large installation are idle. */
  connections(): InstanceConnections {
    this.#connections ??= new InstanceConnections(this.address, this.#limits);
    return this.#connections;
  }

  /** Lets requests under way finish; resolves when the last connection is closed. */
  async retire(): Promise<void> {
    await this.#connections?.close();
  }

  destroy(): Promise<void> {
    return this.#connections?.destroy() ?? Promise.resolve();
  }
}
