// A router's data plane: it keeps the table it was given, sends visitors by it, and counts what they got. A table that it
// is given is in force some time later, as with workers and proxies that are processes of their own.

import { monotonicOf } from '../src/lib/clock.ts';
import { buckets, seesCanary } from '../src/traffic/balance.ts';
import {
  type DataPlane,
  type EnvironmentRoutes,
  type MeasuredBatch,
  type RouterObserver,
  routesKey,
} from '../src/traffic/data-plane.ts';
import { TrafficCounter } from '../src/traffic/measurements.ts';
import type { SimulatedEngine } from './engine.ts';
import type { Random } from './random.ts';
import type { Visits } from './visits.ts';
import type { Machine, World } from './world.ts';

const applyMs = [1, 60] as const;
const slowApplyMs = [200, 3000] as const;

/** Those that come again, with a cookie. */
const knownVisitors = Array.from({ length: 40 }, (_, i) => (i * 2477 + 131) % buckets);
const patterns = ['/', '/cart/*', '/about'] as const;
/** Visitors that get no answer go away after this long. */
const patienceMs = 6000;

export class SimulatedDataPlane implements DataPlane {
  readonly #table = new Map<string, EnvironmentRoutes>();
  readonly #counter: TrafficCounter;
  readonly #world: World;
  readonly #machine: Machine;
  readonly #id: string;
  readonly #visits: Visits;
  /** When each instance that it sent visitors to left its table. */
  readonly leftAt = new Map<string, number>();
  #version = 0;
  #isOpen = false;
  #observer: RouterObserver | null = null;
  /** When the latest of the changes that it was given is in force: each waits for the one before. */
  #appliedAt = 0;

  constructor(world: World, machine: Machine, id: string, visits: Visits) {
    this.#world = world;
    this.#machine = machine;
    this.#id = id;
    this.#visits = visits;
    this.#counter = new TrafficCounter(machine.clock, monotonicOf(machine.clock));
  }

  observe(observer: RouterObserver): void {
    this.#observer = observer;
  }

  async load(version: number, batches: AsyncIterable<EnvironmentRoutes[]>): Promise<void> {
    if (this.#version === 0) await this.#observer?.joining({ id: this.#id, version: 0 });
    const loaded = new Map<string, EnvironmentRoutes>();
    for await (const batch of batches) for (const routes of batch) loaded.set(routesKey(routes), routes);
    await new Promise<void>((resolve) =>
      this.#apply(version, () => {
        for (const [key, routes] of this.#table) {
          if (!loaded.has(key)) this.#replace({ ...routes, hosts: [], shares: [] });
        }
        for (const routes of loaded.values()) this.#replace(routes);
        resolve();
      }),
    );
  }

  change(version: number, environments: EnvironmentRoutes[]): void {
    this.#apply(version, () => {
      for (const routes of environments) this.#replace(routes);
    });
  }

  async listen() {
    this.#isOpen = true;
    return { http: 80, tls: null };
  }

  routers = () => [{ id: this.#id, version: this.#version }];

  takeMeasurements(): MeasuredBatch[] {
    const taken = this.#counter.take();
    return taken ? [{ router: this.#id, ...taken }] : [];
  }

  expireCertificates(): void {}
  setTicketKey(): void {}
  async stop(): Promise<void> {}

  /** Some visitors of every environment. */
  visit(engines: readonly SimulatedEngine[], random: Random, count: number): void {
    for (const routes of this.#table.values()) {
      for (let i = 0; i < count; i++) {
        const isKnown = random.chance(0.6);
        this.#visit(routes, isKnown ? random.pick(knownVisitors) : random.whole(0, buckets - 1), engines, random);
      }
    }
  }

  /** As the proxies do it: the side that the visitor belongs to or, where that has no instance, the other. */
  #visit(
    { project, environment, shares }: EnvironmentRoutes,
    bucket: number,
    engines: readonly SimulatedEngine[],
    random: Random,
  ): void {
    const [stable, canary = null] = shares;
    if (!stable) return;
    const isOnCanary = canary !== null && seesCanary(bucket, canary.revision, canary.percent);
    const [wanted, other] = isOnCanary ? [canary, stable] : [stable, canary];
    const of = { project_id: project, environment };
    if (canary !== null) this.#visits.noteSide(of, canary, bucket, isOnCanary);
    const side = wanted.targets.length > 0 ? wanted : other;
    const target = side && random.pick(side.targets);
    if (!side || !target) return;
    const { clock } = this.#machine;
    const counter = this.#counter.of(project, environment, side.revision);
    const unit = canary === null ? null : { bucket, pattern: random.pick(patterns), instance: target.instance };
    const got = engines.find((one) => one.find(target.instance))?.visit(target, bucket, random.next()) ?? 'no_answer';
    this.#visits.noteSent(of, side.revision);
    const tookMs = random.between(1, 200);
    if (got !== 'hangs') {
      counter.countRequest(clock.now(), tookMs, got === 'good' ? 'ok' : 'error', unit);
      return;
    }
    const request = counter.open(clock.monotonic!());
    this.#world.after(this.#machine, patienceMs, 'a visitor goes away', () => {
      counter.close(request);
      counter.countRequest(clock.now(), patienceMs, 'abandoned', unit);
    });
  }

  /** Who sends visitors to this address. */
  targetAt(host: string, port: number): string | undefined {
    if (!this.#isOpen) return undefined;
    const targets = [...this.#table.values()].flatMap(({ shares }) => shares.flatMap((share) => share.targets));
    return targets.find((target) => target.host === host && target.port === port)?.instance;
  }

  /** The instances that it sends visitors to. */
  targets(): Set<string> {
    return new Set(this.#isOpen ? [...this.#table.values()].flatMap(targetsOf) : []);
  }

  #apply(version: number, replace: () => void): void {
    const { random, now } = this.#world;
    const [least, most] = random.chance(0.1) ? slowApplyMs : applyMs;
    const takesMs = random.between(least, most);
    this.#appliedAt = Math.max(this.#appliedAt, now + takesMs);
    this.#world.after(this.#machine, this.#appliedAt - now, `table ${version} is in force`, () => {
      replace();
      this.#version = version;
      this.#observer?.moved();
    });
  }

  #replace(routes: EnvironmentRoutes): void {
    const key = routesKey(routes);
    const before = this.#table.get(key);
    this.#visits.noteShares(routes);
    if (routes.hosts.length > 0) this.#table.set(key, routes);
    else this.#table.delete(key);
    const kept = new Set(targetsOf(this.#table.get(key)));
    for (const id of targetsOf(before)) if (!kept.has(id)) this.leftAt.set(id, this.#world.now);
  }
}

const targetsOf = (routes: EnvironmentRoutes | undefined): string[] =>
  routes?.shares.flatMap(({ targets }) => targets.map(({ instance }) => instance)) ?? [];
