// A router's data plane: it keeps the table it was given, sends visitors by it, and counts what they got.
import type { Clock } from '../src/lib/clock.ts';
import type { DataPlane, MeasuredBatch, RouterObserver } from '../src/traffic/data-plane.ts';
import { TrafficCounter } from '../src/traffic/measure/traffic-counter.ts';
import { type EnvironmentRoutes, routesKey, type Share } from '../src/traffic/table.ts';
import type { SimulatedEngine } from './engine.ts';
import type { Random } from './random.ts';

export class SimulatedDataPlane implements DataPlane {
  readonly #table = new Map<string, EnvironmentRoutes>();
  readonly #counter: TrafficCounter;
  readonly #clock: Clock;
  readonly #id: string;
  #version = 0;
  #isOpen = false;
  #observer: RouterObserver | null = null;

  constructor(clock: Clock, id: string) {
    this.#clock = clock;
    this.#id = id;
    this.#counter = new TrafficCounter(clock);
  }

  observe(observer: RouterObserver): void {
    this.#observer = observer;
  }

  async load(version: number, batches: AsyncIterable<EnvironmentRoutes[]>): Promise<void> {
    const loaded = new Set<string>();
    for await (const batch of batches) {
      for (const routes of batch) {
        loaded.add(routesKey(routes));
        this.#replace(routes);
      }
    }
    for (const key of [...this.#table.keys()]) if (!loaded.has(key)) this.#table.delete(key);
    this.#moveTo(version);
  }

  change(version: number, environments: EnvironmentRoutes[]): void {
    for (const routes of environments) this.#replace(routes);
    this.#moveTo(version);
  }

  async listen() {
    await this.#observer?.joining({ id: this.#id, version: this.#version });
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
    const nowMs = this.#clock.now();
    for (const { project, environment, shares } of this.#table.values()) {
      for (let i = 0; i < count; i++) {
        const share = shareFor(shares, random.next() * 100);
        const target = share && random.pick(share.targets);
        if (!share || !target) continue;
        const { instance, host, port } = target;
        const engine = engines.find((one) => one.find(instance));
        const got = engine?.visit(instance, host, port, random.next()) ?? 'no_answer';
        const counter = this.#counter.of(project, environment, share.revision);
        counter.countRequest(nowMs, random.between(1, 200), got !== 'good');
      }
    }
  }

  /** The instances that it sends visitors to. */
  targets(): Set<string> {
    const instances = new Set<string>();
    if (!this.#isOpen) return instances;
    for (const { shares } of this.#table.values()) {
      for (const { targets } of shares) for (const { instance } of targets) instances.add(instance);
    }
    return instances;
  }

  #replace(routes: EnvironmentRoutes): void {
    if (routes.hosts.length > 0) this.#table.set(routesKey(routes), routes);
    else this.#table.delete(routesKey(routes));
  }

  #moveTo(version: number): void {
    this.#version = version;
    this.#observer?.moved();
  }
}

/** The one at this point of the percentages; another where it has no instance, as the proxy does. */
function shareFor(shares: readonly Share[], point: number): Share | undefined {
  let left = point;
  const chosen = shares.find((share) => {
    left -= share.percent;
    return left < 0;
  });
  return chosen && chosen.targets.length > 0 ? chosen : shares.find(({ targets }) => targets.length > 0);
}
