// Health checks: one probe of an instance, and the watch that repeats probes and reports when an instance becomes
// healthy or unhealthy. Every pass names the instances to watch, from the rows it has read. A watch that no pass renews
// ends by itself, as after the loss of a lease.
import { connect } from 'node:net';
import type { HealthCheck } from '../../contract/environments.ts';
import { type EnvironmentKey, keyText } from '../../environments/environment-key.ts';
import type { Clock } from '../../lib/clock.ts';
import { get } from '../../lib/node-http.ts';

/**
 * Until it is healthy for the first time an instance is probed often, because people are waiting for the deployment. A
 * program takes a moment to listen, so the first probes that fail are followed at once by others. Those that succeed keep
 * their distance, so that `healthy_after` of them say as much as ever.
 */
const startingIntervalMs = 100;
const firstRetryMs = 15;
const retryGrowth = 1.5;
/** Longer than from one pass to the next, shorter than the lease of an environment. */
const renewedForMs = 15_000;

export type Health = 'unknown' | 'healthy' | 'unhealthy';

export interface HealthTarget {
  instance: string;
  host: string;
  port: number;
  check: HealthCheck;
  /** Its health as last seen, perhaps by another process. */
  known: Health;
  /** Whether its program listens on its port, where the engine can tell; null: it cannot. */
  listens?(): Promise<boolean | null>;
}

export interface LastCheck {
  result: ProbeResult;
  agoMs: number;
}

interface Watched {
  key: EnvironmentKey;
  target: HealthTarget;
  until: number;
  health: Health;
  good: number;
  bad: number;
  last: (ProbeResult & { at: number }) | null;
  /** After how long the next failure of one that was not healthy yet is followed by another probe. */
  retryMs: number;
  timer: NodeJS.Timeout | null;
}

export class HealthWatch {
  readonly #watched = new Map<string, Watched>();
  /** The instances that the latest pass named, by environment. */
  readonly #named = new Map<string, Set<string>>();
  readonly #clock: Clock;
  readonly #onChange: (key: EnvironmentKey) => void;
  readonly #send: Probe;
  readonly #onUnable: (reason: string) => void;
  /** null: this process is able to check. */
  #unable: string | null = null;

  /** `onUnable` is told once that checks do not work, and why. */
  constructor(
    clock: Clock,
    onChange: (key: EnvironmentKey) => void,
    send: Probe,
    onUnable: (reason: string) => void = () => {},
  ) {
    this.#clock = clock;
    this.#onChange = onChange;
    this.#send = send;
    this.#onUnable = onUnable;
  }

  /** Watches these instances of the environment, at these addresses, and no others of it. */
  watch(key: EnvironmentKey, targets: HealthTarget[]): void {
    const wanted = new Set(targets.map(({ instance }) => instance));
    const name = keyText(key);
    for (const instance of this.#named.get(name) ?? []) if (!wanted.has(instance)) this.forget(instance);
    if (wanted.size > 0) this.#named.set(name, wanted);
    else this.#named.delete(name);
    const until = this.#clock.now() + renewedForMs;
    for (const target of targets) {
      const watched = this.#watched.get(target.instance);
      if (watched && watched.target.host === target.host && watched.target.port === target.port) {
        Object.assign(watched, { target, until });
        continue;
      }
      // What answered elsewhere says nothing about this address.
      if (watched) this.forget(target.instance);
      const health = watched ? 'unknown' : target.known;
      const added: Watched = {
        ...{ key, target, until, health, good: 0, bad: 0, last: null },
        retryMs: firstRetryMs,
        timer: null,
      };
      this.#watched.set(target.instance, added);
      void this.#probe(added);
    }
  }

  /** As long again as if a pass had named its instances once more. False: the checks of one have ended. */
  renew(key: EnvironmentKey): boolean {
    const until = this.#clock.now() + renewedForMs;
    for (const instance of this.#named.get(keyText(key)) ?? []) {
      const watched = this.#watched.get(instance);
      if (!watched) return false;
      watched.until = until;
    }
    return true;
  }

  forget(instance: string): void {
    const watched = this.#watched.get(instance);
    if (watched?.timer) clearTimeout(watched.timer);
    this.#watched.delete(instance);
  }

  healthOf(instance: string): Health {
    return this.#watched.get(instance)?.health ?? 'unknown';
  }

  /** What its latest health check said, and how long ago; null: there was none. */
  lastCheckOf(instance: string): LastCheck | null {
    const last = this.#watched.get(instance)?.last;
    if (!last) return null;
    const { at, ...result } = last;
    return { result, agoMs: this.#clock.now() - at };
  }

  stop(): void {
    for (const instance of [...this.#watched.keys()]) this.forget(instance);
  }

  async #probe(watched: Watched): Promise<void> {
    const { instance, host, port, check, listens } = watched.target;
    if (this.#clock.now() > watched.until) return this.forget(instance);
    const beganAt = this.#clock.now();
    const result = await this.#send({
      ...{ host, port, path: check.path, timeoutMs: check.timeout_s * 1000 },
      // It costs a question to the engine, and one that is healthy has answered it.
      ...(watched.health !== 'healthy' && listens && { listens }),
    });
    if (this.#watched.get(instance) !== watched) return;
    if ('unable' in result) {
      if (this.#unable === null) this.#onUnable(result.unable);
      this.#unable = result.unable;
      watched.timer = setTimeout(() => void this.#probe(watched), check.interval_s * 1000).unref();
      return;
    }
    this.#unable = null;
    const before = watched.health;
    const hasTurned = watched.last !== null && watched.last.ok !== result.ok;
    watched.last = { ...result, at: this.#clock.now() };
    watched.good = result.ok ? watched.good + 1 : 0;
    watched.bad = result.ok ? 0 : watched.bad + 1;
    if (watched.good >= check.healthy_after) watched.health = 'healthy';
    else if (watched.bad >= check.unhealthy_after && before !== 'unknown') watched.health = 'unhealthy';
    const waitMs =
      watched.health === 'unknown' ? startingWaitMs(watched, this.#clock.now() - beganAt) : check.interval_s * 1000;
    watched.timer = setTimeout(() => void this.#probe(watched), waitMs).unref();
    if (watched.health !== before || hasTurned) this.#onChange(watched.key);
  }
}

/** Until the next probe of one that is not healthy yet. `tookMs`: the latest. */
function startingWaitMs(watched: Watched, tookMs: number): number {
  if (watched.last?.ok) return Math.max(0, startingIntervalMs - tookMs);
  const waitMs = watched.retryMs;
  watched.retryMs = Math.min(startingIntervalMs, waitMs * retryGrowth);
  return waitMs;
}

export type ProbeResult =
  /** `listens`: the engine said so. */
  | { ok: true; message?: string; listens?: true }
  /** no_connection: refused, or closed at once; no_answer: not in time. */
  | { ok: false; fault: 'no_connection' | 'no_answer' | 'bad_answer'; message: string };

/** This process could not ask, which says nothing about the instance. */
interface Unable {
  unable: string;
}

interface ProbeTarget {
  host: string;
  port: number;
  /** null: a TCP connect is enough. */
  path: string | null;
  timeoutMs: number;
  listens?: HealthTarget['listens'];
}

/**
 * Docker's proxy accepts connections for a program that does not listen yet, and then closes them. So a connection
 * counts only once it has stayed open for a moment: a short one if the engine then says that the program listens.
 */
const mustStayOpenMs = 60;
const askAfterMs = 10;

export type Probe = (target: ProbeTarget) => Promise<ProbeResult | Unable>;

export const probe: Probe = (target) =>
  target.path === null ? probeTcp(target) : probeHttp({ ...target, path: target.path });

function probeTcp({ host, port, timeoutMs, listens }: ProbeTarget): Promise<ProbeResult | Unable> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    let timer = timeLimit(timeoutMs, (isLate) => finish(isLate ? stoodStill : tooSlow('no connection in time')));
    let asking: NodeJS.Timeout | undefined;
    const finish = (result: ProbeResult | Unable) => {
      clearTimeout(timer);
      clearTimeout(asking);
      socket.destroy();
      resolve(result);
    };
    const ask = async () => {
      const isListening = await listens!().catch(() => null);
      // It may be closed by now.
      if (isListening && !socket.destroyed) finish({ ok: true, listens: true });
      else if (isListening === false) finish(unreachable('the program does not listen yet'));
    };
    socket.on('connect', () => {
      clearTimeout(timer);
      timer = setTimeout(() => finish({ ok: true }), mustStayOpenMs);
      if (listens) asking = setTimeout(ask, askAfterMs);
    });
    socket.on('data', () => finish({ ok: true }));
    socket.on('error', (error) => finish(failedWith(error)));
    socket.on('close', () => finish(unreachable('the connection was closed at once')));
  });
}

function probeHttp({ host, port, path, timeoutMs }: ProbeTarget & { path: string }): Promise<ProbeResult | Unable> {
  return new Promise((resolve) => {
    const request = get({ host, port, path, agent: false, headers: { 'user-agent': 'sluice-health' } }, (response) => {
      const status = response.statusCode ?? 0;
      response.destroy();
      const ok = status >= 200 && status < 400;
      const message = `${path} answered ${status}`;
      finish(ok ? { ok, message } : { ok: false, fault: 'bad_answer', message });
    });
    const timer = timeLimit(timeoutMs, (isLate) => finish(isLate ? stoodStill : tooSlow(`${path}: no answer in time`)));
    const finish = (result: ProbeResult | Unable) => {
      clearTimeout(timer);
      request.destroy();
      resolve(result);
    };
    request.on('error', (error) => finish(failedWith(error)));
  });
}

/** Where these errors come from: out of descriptors, memory, or local ports. */
const ownFaults = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL', 'ENETDOWN']);

const failedWith = ({ code, message }: NodeJS.ErrnoException): ProbeResult | Unable =>
  ownFaults.has(code ?? '') ? { unable: message } : unreachable(message);

const stoodStill: Unable = { unable: 'this process stood still' };
/** Later than that, this process did not look at its connections when the time was over. */
const lateMs = 250;

/** `isLate`: the answer may have been there in time. */
function timeLimit(timeoutMs: number, onEnd: (isLate: boolean) => void): NodeJS.Timeout {
  const startedAt = performance.now();
  return setTimeout(() => onEnd(performance.now() - startedAt > timeoutMs + lateMs), timeoutMs);
}

const unreachable = (message: string): ProbeResult => ({ ok: false, fault: 'no_connection', message });

const tooSlow = (message: string): ProbeResult => ({ ok: false, fault: 'no_answer', message });
