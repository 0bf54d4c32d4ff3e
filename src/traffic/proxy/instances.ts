// The instances behind the proxy, each with its kept connections, and the routing table made ready for the way of a
// request. An instance that stands in two tables in a row keeps its connections; one that is gone closes them as soon as
// its last request has ended.
import { Pool } from 'undici';
import { type Counts, RevisionCounts } from '../measure/counts.ts';
import { type Candidate, createBuckets, seesCanary } from '../pick.ts';
import type { Route, RoutingTable, Target } from '../table.ts';
import type { ProxyLimits } from './limits.ts';

export class Instance implements Candidate {
  underWay = 0;
  ejectedUntil = 0;
  readonly #origin: string;
  readonly #limits: ProxyLimits;
  #pool: Pool | null = null;

  constructor({ host, port }: Target, limits: ProxyLimits) {
    this.#origin = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
    this.#limits = limits;
  }

  /** Made with the first request: most environments of a large installation are idle. */
  pool(): Pool {
    this.#pool ??= new Pool(this.#origin, {
      connectTimeout: this.#limits.connectMs,
      headersTimeout: this.#limits.answerHeadMs,
      bodyTimeout: this.#limits.idleMs,
      keepAliveTimeout: this.#limits.instanceKeepAliveMs,
      maxHeaderSize: this.#limits.headerBytes,
      allowH2: false,
    });
    return this.#pool;
  }

  /** Requests under way end where they are; resolves when the last connection is closed. */
  async retire(): Promise<void> {
    await this.#pool?.close().catch(() => {});
  }

  destroy(): Promise<void> {
    return this.#pool?.destroy() ?? Promise.resolve();
  }
}

export interface Side {
  revision: number;
  percent: number;
  instances: Instance[];
  counts: RevisionCounts;
  turn: number;
}

/** Of an environment where nothing is live yet. */
const emptySide = (): Side => ({
  revision: 0,
  percent: 100,
  instances: [],
  counts: new RevisionCounts('', '', 0),
  turn: 0,
});

export interface Way {
  stable: Side;
  canary: Side | null;
  /** Its hosts have a certificate. */
  secure: boolean;
  nextBucket: () => number;
}

export const sideOf = ({ stable, canary }: Way, bucket: number): Side =>
  canary !== null && seesCanary(bucket, canary.revision, canary.percent) ? canary : stable;

export class Ways {
  #ways = new Map<string, Way>();
  #instances = new Map<string, Instance>();
  #sequences = new Map<string, () => number>();
  readonly #retired = new Set<Instance>();
  readonly #limits: ProxyLimits;
  readonly #counts: Counts;

  constructor(limits: ProxyLimits, counts: Counts) {
    this.#limits = limits;
    this.#counts = counts;
  }

  find(host: string): Way | undefined {
    return this.#ways.get(host);
  }

  apply(table: RoutingTable): void {
    const before = this.#instances;
    const sequences = this.#sequences;
    const ways = new Map<string, Way>();
    this.#instances = new Map();
    this.#sequences = new Map();
    this.#counts.beginTable();
    const made = new Map<Route, Way>(); // an environment may have a thousand hosts
    for (const [host, route] of table) {
      const way = made.get(route) ?? this.#wayOf(route, before, sequences);
      made.set(route, way);
      ways.set(host.toLowerCase(), way);
    }
    this.#ways = ways;
    for (const [key, instance] of before) if (!this.#instances.has(key)) this.#retire(instance);
  }

  #retire(instance: Instance): void {
    this.#retired.add(instance);
    void instance.retire().then(() => this.#retired.delete(instance));
  }

  #wayOf(route: Route, before: Map<string, Instance>, sequences: Map<string, () => number>): Way {
    const { project, environment } = route;
    const sides = route.shares.map(({ revision, percent, targets }) => ({
      revision,
      percent,
      instances: targets.map((target) => this.#instanceOf(target, before)),
      counts: this.#counts.of(project, environment, revision),
      turn: 0,
    }));
    const key = `${project}/${environment}`;
    // Spreading visitors evenly needs no secret, only a start that differs from process to process.
    const nextBucket = this.#sequences.get(key) ?? sequences.get(key) ?? createBuckets(Math.random());
    this.#sequences.set(key, nextBucket);
    const [stable = emptySide(), canary = null] = sides;
    return { stable, canary, secure: route.secure === true, nextBucket };
  }

  #instanceOf(target: Target, before: Map<string, Instance>): Instance {
    const key = `${target.instance} ${target.host} ${target.port}`;
    const instance = this.#instances.get(key) ?? before.get(key) ?? new Instance(target, this.#limits);
    this.#instances.set(key, instance);
    return instance;
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#instances.values(), ...this.#retired].map((instance) => instance.destroy()));
  }
}
