// A router's data plane: it keeps the table it was given last, sends visitors by it, and counts what they got.
import type { Clock } from '../src/lib/clock.ts';
import type { DataPlane } from '../src/traffic/data-plane.ts';
import { TrafficCounter } from '../src/traffic/measure/traffic-counter.ts';
import type { RoutingTable, Share } from '../src/traffic/table.ts';
import type { SimulatedEngine } from './engine.ts';
import type { Random } from './random.ts';

export class SimulatedDataPlane implements DataPlane {
  table: RoutingTable = new Map();
  /** When the table came, in the world's time. */
  appliedAt = 0;
  readonly #counter: TrafficCounter;
  readonly #clock: Clock;
  readonly #now: () => number;

  constructor(clock: Clock, now: () => number) {
    this.#clock = clock;
    this.#counter = new TrafficCounter(clock);
    this.#now = now;
  }

  apply(table: RoutingTable): void {
    this.table = table;
    this.appliedAt = this.#now();
    this.#counter.beginTable();
    for (const { project, environment, shares } of table.values()) {
      for (const { revision } of shares) this.#counter.of(project, environment, revision);
    }
  }

  takeMeasurements() {
    return this.#counter.take();
  }

  port = () => 80;
  tlsPort = () => null;
  async stop(): Promise<void> {}

  /** Some visitors of every environment. */
  visit(engines: readonly SimulatedEngine[], random: Random, count: number): void {
    const nowMs = this.#clock.now();
    for (const { project, environment, shares } of this.table.values()) {
      for (let i = 0; i < count; i++) {
        const share = shareFor(shares, random.next() * 100);
        const target = share && random.pick(share.targets);
        if (!share || !target) continue;
        const { instance, host, port } = target;
        const engine = engines.find((one) => one.find(instance));
        const got = engine?.visit(instance, host, port, random.next()) ?? 'no_answer';
        this.#counter
          .of(project, environment, share.revision)
          .countRequest(nowMs, random.between(1, 200), got !== 'good');
      }
    }
  }

  /** The instances that it sends visitors to. */
  targets(): Set<string> {
    const instances = new Set<string>();
    for (const { shares } of this.table.values()) {
      for (const { targets } of shares) for (const { instance } of targets) instances.add(instance);
    }
    return instances;
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
