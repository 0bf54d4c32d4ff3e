// Starts instances on the hosts of a region, each on one. Where an instance is, the hosts say; only of what was started
// since they were asked, or got no answer, do we know better.
import type { EngineError } from '../../engine.ts';
import type { InstanceSpec } from '../../single-instances.ts';
import { EngineTimeout } from '../client.ts';
import { type Host, isUnavailable, NoAnswer } from './host.ts';
import type { HostSet } from './host-set.ts';
import { chooseHost, type Placed } from './placement.ts';

interface Start extends Placed<Host> {
  /** By performance.now(); null: it is under way. */
  endedAt: number | null;
  /** It got no answer: the host may have it, or get it yet. */
  isUnsure: boolean;
}

/** A host that answers again has carried out what it was sent before by then. */
const unsureForMs = 60_000;

/** Connections that were never made. */
const unreached = new Set(['ECONNREFUSED', 'ENOENT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN']);

/** Whether the host may start the instance all the same. */
function mayStartYet(error: EngineError): boolean {
  if (error instanceof NoAnswer || error instanceof EngineTimeout) return true;
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
  return code !== undefined && !unreached.has(code);
}

export class Starts {
  readonly #hosts: HostSet;
  readonly #running = new Map<string, Promise<void>>();
  readonly #starts = new Map<string, Start>();

  constructor(hosts: HostSet) {
    this.#hosts = hosts;
  }

  /** Concurrent starts of one id share one. */
  start(spec: InstanceSpec): Promise<void> {
    const running = this.#running.get(spec.id) ?? this.#start(spec).finally(() => this.#running.delete(spec.id));
    this.#running.set(spec.id, running);
    return running;
  }

  async #start(spec: InstanceSpec): Promise<void> {
    const found = await this.#hosts.look();
    this.#forgetSeen();
    const host = this.#starts.get(spec.id)?.host ?? found.get(spec.id)?.host ?? this.#hosts.hostOf(spec.id);
    if (host) {
      await this.#hosts.decided(host);
      if (!host.isGivenUp) return this.#startOn(host, spec);
    }
    const running = [...found.values()].filter(({ state, instance }) => state !== 'exited' && instance.id !== spec.id);
    return this.#startAnywhere(
      running.map(({ host, instance }) => ({ ...instance, host })),
      spec,
    );
  }

  async #startAnywhere(running: (Placed<Host> & { id: string })[], spec: InstanceSpec): Promise<void> {
    const tried = new Set<Host>();
    let fault: unknown = this.#hosts.noneAnswers();
    for (;;) {
      const candidates = this.#hosts.answering().filter((host) => !tried.has(host));
      const chosen = chooseHost(candidates, this.#placed(running), spec);
      if (!chosen) throw fault;
      try {
        return await this.#startOn(chosen, spec);
      } catch (error) {
        if (!isUnavailable(error) || mayStartYet(error)) throw error;
        fault = error;
        tried.add(chosen);
      }
    }
  }

  async #startOn(host: Host, spec: InstanceSpec): Promise<void> {
    const { project, environment, revision } = spec;
    const wasUnsure = this.#starts.get(spec.id)?.isUnsure ?? false;
    const start: Start = { host, project, environment, revision, endedAt: null, isUnsure: false };
    this.#starts.set(spec.id, start);
    try {
      await host.ask((engine) => engine.start(spec));
      // Should the host go away now, the instance is known to be there.
      await host.lookAgain();
    } catch (error) {
      if (isUnavailable(error) && (wasUnsure || mayStartYet(error))) start.isUnsure = true;
      else this.#starts.delete(spec.id);
      throw error;
    } finally {
      start.endedAt = performance.now();
    }
  }

  /** What runs, and what is being started: it may not be seen yet. */
  #placed(running: (Placed<Host> & { id: string })[]): Placed<Host>[] {
    const seen = new Set(running.map(({ id }) => id));
    return [...running, ...[...this.#starts].flatMap(([id, start]) => (seen.has(id) ? [] : [start]))];
  }

  /** Those that ended before their host was asked are seen by now, or gone again. */
  #forgetSeen(): void {
    for (const [id, { endedAt, isUnsure, host }] of this.#starts) {
      if (endedAt === null) continue;
      const isSeen = endedAt + (isUnsure ? unsureForMs : 0) < host.seenAt;
      if (isSeen || host.isGivenUp) this.#starts.delete(id);
    }
  }

  forget(id: string): void {
    this.#starts.delete(id);
  }
}
