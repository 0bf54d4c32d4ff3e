// Looks at instances again and again, and says when one turned healthy or unhealthy.
import type { HealthCheck } from '../../contract/environments.ts';
import { type ProbeResult, probe } from './probe.ts';

/** Until it first is healthy an instance is looked at often: nobody likes to wait for a deployment. */
const startingIntervalMs = 100;

export type Health = 'unknown' | 'healthy' | 'unhealthy';

interface Watched {
  host: string;
  port: number;
  check: HealthCheck;
  health: Health;
  good: number;
  bad: number;
  last: ProbeResult | null;
  timer: NodeJS.Timeout | null;
}

export class HealthWatch {
  readonly #watched = new Map<string, Watched>();
  readonly #onChange: (instance: string) => void;

  constructor(onChange: (instance: string) => void) {
    this.#onChange = onChange;
  }

  /** Begins, or goes on with a new address or check. `known` is what was last known of it, by whomever. */
  watch(instance: string, address: { host: string; port: number }, check: HealthCheck, known: Health): void {
    const watched = this.#watched.get(instance);
    if (watched) {
      Object.assign(watched, address, { check });
      return;
    }
    const fresh: Watched = { ...address, check, health: known, good: 0, bad: 0, last: null, timer: null };
    this.#watched.set(instance, fresh);
    void this.#look(instance, fresh);
  }

  forget(instance: string): void {
    const watched = this.#watched.get(instance);
    if (watched?.timer) clearTimeout(watched.timer);
    this.#watched.delete(instance);
  }

  healthOf(instance: string): Health {
    return this.#watched.get(instance)?.health ?? 'unknown';
  }

  lastOf(instance: string): ProbeResult | null {
    return this.#watched.get(instance)?.last ?? null;
  }

  stop(): void {
    for (const instance of [...this.#watched.keys()]) this.forget(instance);
  }

  async #look(instance: string, watched: Watched): Promise<void> {
    const { host, port, check } = watched;
    const result = await probe({ host, port, path: check.path, timeoutMs: check.timeout_s * 1000 });
    if (this.#watched.get(instance) !== watched) return;
    const before = watched.health;
    watched.last = result;
    watched.good = result.ok ? watched.good + 1 : 0;
    watched.bad = result.ok ? 0 : watched.bad + 1;
    if (watched.good >= check.healthy_after) watched.health = 'healthy';
    else if (watched.bad >= check.unhealthy_after && before !== 'unknown') watched.health = 'unhealthy';
    const waitMs = watched.health === 'unknown' ? startingIntervalMs : check.interval_s * 1000;
    watched.timer = setTimeout(() => void this.#look(instance, watched), waitMs).unref();
    if (watched.health !== before) this.#onChange(instance);
  }
}
