// A router's data plane: it keeps the table it was given, sends visitors by it, and counts what they got. A table that it
// is given is in force some time later, as with workers and proxies that are processes of their own.
import {
  type DataPlane,
  type EnvironmentRoutes,
  type MeasuredBatch,
  type RouterObserver,
  routesKey,
  type Share,
} from '../src/traffic/data-plane.ts';
import { TrafficCounter } from '../src/traffic/measurements.ts';
import type { SimulatedEngine } from './engine.ts';
import type { Random } from './random.ts';
import type { Machine, World } from './world.ts';

const applyMs = [1, 60] as const;
const slowApplyMs = [200, 3000] as const;

export class SimulatedDataPlane implements DataPlane {
  readonly #table = new Map<string, EnvironmentRoutes>();
  readonly #counter: TrafficCounter;
  readonly #world: World;
  readonly #machine: Machine;
  readonly #id: string;
  /** When each instance that it sent visitors to left its table. */
  readonly leftAt = new Map<string, number>();
  #version = 0;
  #isOpen = false;
  #observer: RouterObserver | null = null;
  /** When the latest of the changes that it was given is in force: each waits for the one before. */
  #appliedAt = 0;

  constructor(world: World, machine: Machine, id: string) {
    this.#world = world;
    this.#machine = machine;
    this.#id = id;
    this.#counter = new TrafficCounter(machine.clock);
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
    const nowMs = this.#machine.clock.now();
    for (const { project, environment, shares } of this.#table.values()) {
      for (let i = 0; i < count; i++) {
        const share = shareFor(shares, random.next() * 100);
        const target = share && random.pick(share.targets);
        if (!share || !target) continue;
        const { instance, host, port } = target;
        const engine = engines.find((one) => one.find(instance));
        const got = engine?.visit(instance, host, port, random.next()) ?? 'no_answer';
        const counter = this.#counter.of(project, environment, share.revision);
        counter.countRequest(nowMs, random.between(1, 200), got === 'good' ? 'ok' : 'error');
      }
    }
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
    if (routes.hosts.length > 0) this.#table.set(key, routes);
    else this.#table.delete(key);
    const kept = new Set(targetsOf(this.#table.get(key)));
    for (const id of targetsOf(before)) if (!kept.has(id)) this.leftAt.set(id, this.#world.now);
  }
}

const targetsOf = (routes: EnvironmentRoutes | undefined): string[] =>
  routes?.shares.flatMap(({ targets }) => targets.map(({ instance }) => instance)) ?? [];

/** The one at this point of the percentages; another where it has no instance, as the proxy does. */
function shareFor(shares: readonly Share[], point: number): Share | undefined {
  let left = point;
  const chosen = shares.find((share) => {
    left -= share.percent;
    return left < 0;
  });
  return chosen && chosen.targets.length > 0 ? chosen : shares.find(({ targets }) => targets.length > 0);
}
