// Requests that wait at an instance whose machine is gone. Nobody ends their connections then: one that was kept from
// earlier takes the request and shows no sign, and its visitor would wait for as long as the slowest response may take.
// So an instance that keeps a visitor waiting is asked for a new connection. One that is only slow accepts it, or refuses
// it as it drains; where nothing answers at all, what waits there goes to another instance, if it may be sent twice.
import { connect } from 'node:net';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Attempt } from './attempt.ts';
import { isSilence } from './failures.ts';
import type { ProxyLimits } from './limits.ts';
import type { Instance } from './route-table.ts';

const checkEveryMs = 1000;

export class SilentInstances {
  /** Those that have sent their request and wait for the first byte of a response, oldest first. */
  readonly waiting = new Set<Attempt>();
  /** When each was last asked, for as long as something waits there. */
  #askedAt = new Map<Instance, number>();
  readonly #limits: ProxyLimits;
  readonly #monotonic: Clock;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;

  constructor(limits: ProxyLimits, monotonic: Clock, log: Log) {
    this.#limits = limits;
    this.#monotonic = monotonic;
    this.#log = log;
    this.#timer = setInterval(() => this.#check(), Math.min(checkEveryMs, limits.silentMs)).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const { silentMs } = this.#limits;
    const nowMs = this.#monotonic.now();
    const asked = new Map<Instance, number>();
    for (const { instance, sentAtMs } of this.waiting) {
      if (nowMs - sentAtMs < silentMs) break;
      if (asked.has(instance)) continue;
      const before = this.#askedAt.get(instance);
      const isDue = before === undefined || nowMs - before >= silentMs;
      asked.set(instance, isDue ? nowMs : before);
      if (isDue) this.#ask(instance, nowMs);
    }
    this.#askedAt = asked;
  }

  #ask(instance: Instance, askedAtMs: number): void {
    const { connectMs } = this.#limits;
    const socket = connect(instance.address);
    const timer = setTimeout(
      () => socket.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })),
      connectMs,
    );
    socket.once('connect', () => socket.destroy());
    socket.once('error', (error) => isSilence(error) && this.#leave(instance, askedAtMs));
    socket.once('close', () => clearTimeout(timer));
  }

  #leave(instance: Instance, askedAtMs: number): void {
    instance.ejectedUntil = this.#monotonic.now() + this.#limits.ejectSilentMs;
    const left = [...this.waiting].filter(
      (one) => one.instance === instance && one.sentAtMs <= askedAtMs && one.leave(),
    );
    this.#log.warn(
      { instance: instance.id, requests: left.length },
      'an instance does not answer: requests go elsewhere',
    );
  }
}
