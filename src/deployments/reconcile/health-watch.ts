// Probes instances again and again, and says when one turned healthy or unhealthy.
import type { HealthCheck } from '../../contract/environments.ts';
import { type EnvironmentKey, keyText } from '../../environments/key.ts';
import type { Failure } from '../rules/steps.ts';
import { type ProbeResult, probe } from './probe.ts';

/** Until it is healthy for the first time an instance is probed often: people are waiting for the deployment. */
const startingIntervalMs = 100;

export type Health = 'unknown' | 'healthy' | 'unhealthy';

interface Watched {
  key: EnvironmentKey;
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
  readonly #onChange: (key: EnvironmentKey) => void;

  constructor(onChange: (key: EnvironmentKey) => void) {
    this.#onChange = onChange;
  }

  /** Begins, or goes on with a new address or check. `known` is its health as last seen, perhaps by another process. */
  watch(
    key: EnvironmentKey,
    instance: string,
    address: { host: string; port: number },
    check: HealthCheck,
    known: Health,
  ): void {
    const watched = this.#watched.get(instance);
    if (watched) {
      Object.assign(watched, address, { check });
      return;
    }
    const fresh: Watched = { key, ...address, check, health: known, good: 0, bad: 0, last: null, timer: null };
    this.#watched.set(instance, fresh);
    void this.#probe(instance, fresh);
  }

  forget(instance: string): void {
    const watched = this.#watched.get(instance);
    if (watched?.timer) clearTimeout(watched.timer);
    this.#watched.delete(instance);
  }

  forgetEnvironment(key: EnvironmentKey): void {
    const name = keyText(key);
    for (const [instance, watched] of this.#watched) if (keyText(watched.key) === name) this.forget(instance);
  }

  healthOf(instance: string): Health {
    return this.#watched.get(instance)?.health ?? 'unknown';
  }

  /** The instance answers its health check, but not as it should; null: it does not, or not at all. */
  badAnswerOf(instance: string): Failure | null {
    const last = this.#watched.get(instance)?.last;
    if (!last || last.ok || last.fault !== 'bad_answer') return null;
    return { code: 'health_check_failed', message: last.message };
  }

  stop(): void {
    for (const instance of [...this.#watched.keys()]) this.forget(instance);
  }

  async #probe(instance: string, watched: Watched): Promise<void> {
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
    watched.timer = setTimeout(() => void this.#probe(instance, watched), waitMs).unref();
    if (watched.health !== before) this.#onChange(watched.key);
  }
}
