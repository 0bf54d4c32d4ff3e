// Several Docker hosts as one engine. Instances are spread over the hosts that answer. What runs on a host that goes away
// counts as there for a grace period, then as gone: it is replaced on the others, and removed when the host is back.
import { pinImage } from '../../../contract/references.ts';
import type { Log } from '../../../lib/log.ts';
import {
  type EngineChange,
  EngineError,
  type ImageAccess,
  type InstanceEngine,
  type InstanceSpec,
  needsRegistry,
  type PreparedImage,
  type RemovedImages,
} from '../../engine.ts';
import { createDockerEngine, type DockerEngine, type DockerOptions } from '../docker.ts';
import { defaultDockerSocket, reachOf } from '../docker-address.ts';
import { EngineTimeout } from '../docker-client.ts';
import { AnswerLost, type Host, isUnavailable } from './host.ts';
import { type Found, HostSet } from './host-set.ts';
import { chooseHost, type Placed } from './placement.ts';

interface DockerHostsOptions {
  /** Each under a name of its own. */
  engines: { name: string; engine: DockerEngine }[];
  graceMs: number;
  log?: Log;
}

function createDockerHosts({ engines, graceMs, log }: DockerHostsOptions): InstanceEngine {
  const listeners = new Set<(change: EngineChange) => void>();
  const onChange = () => {
    for (const listener of listeners) listener(null);
  };
  const hosts = new HostSet({ engines, graceMs, onChange, log });
  const starts = new HostStarts(hosts);

  /** undefined: there is no such instance. */
  const findHost = async (id: string) => {
    await hosts.isReady;
    return hosts.hostOf(id) ?? (await hosts.instances()).get(id)?.host;
  };

  return {
    kind: 'docker',
    publishesOn: [...new Set(engines.flatMap(({ engine }) => engine.publishesOn ?? []))],
    async probe() {
      await hosts.isReady;
      await Promise.any(hosts.all.map((host) => host.check().then(() => host.isAway && Promise.reject()))).catch(() => {
        throw hosts.noneAnswers();
      });
    },
    prepare: (image, variables, access) => prepareOn(hosts, image, variables, access, log),
    start: (spec) => starts.start(spec),
    list: async () => [...(await hosts.instances()).values()].map(({ instance }) => instance),
    async stop(id, graceS, beforeRemoval) {
      const copies = (await hosts.copies()).get(id) ?? [];
      await Promise.all(copies.map((copy) => stopCopy(hosts, copy, graceS, beforeRemoval)));
      starts.forget(id);
    },
    logs: async (id, query) => (await findHost(id))?.ask((engine) => engine.logs(id, query)) ?? [],
    async *follow(id, after, signal) {
      const host = await findHost(id);
      if (host) yield* host.engine.follow!(id, after, AbortSignal.any([signal, host.gone]));
    },
    async listening(id) {
      const host = await findHost(id);
      return host && !host.isAway ? host.ask((engine) => engine.listening!(id)) : null;
    },
    async usage(ids) {
      await hosts.isReady;
      const asked = hosts.answering().map((host) => {
        const own = ids.filter((id) => host.had(id));
        return host.ask((engine) => engine.usage!(own)).catch(() => []);
      });
      return new Map((await Promise.all(asked)).flatMap((used) => [...used]));
    },
    watch(listener) {
      listeners.add(listener);
      const ends = engines.map(({ engine }) => engine.watch!(listener));
      return () => {
        listeners.delete(listener);
        for (const end of ends) end();
      };
    },
    async removeImages(kept, idleMs, isUrgent) {
      return sum(await onAnswering(hosts, (engine) => engine.removeImages!(kept, idleMs, isUrgent)));
    },
    countImages: async () => sum(await onAnswering(hosts, (engine) => engine.countImages!())),
    hosts: () => hosts.all.map(({ name, isAway }) => ({ name, available: !isAway })),
    close: () => hosts.close(),
  };
}

async function onAnswering<T>(hosts: HostSet, work: (engine: DockerEngine) => Promise<T>): Promise<T[]> {
  await hosts.isReady;
  const answers = await Promise.allSettled(hosts.answering().map((host) => host.ask(work)));
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
}

const sum = (parts: RemovedImages[]): RemovedImages =>
  parts.reduce((all, { images, bytes }) => ({ images: all.images + images, bytes: all.bytes + bytes }), {
    images: 0,
    bytes: 0,
  });

/** On a host that is away: once it is back, or not at all if it is given up. What is left there then is an orphan. */
async function stopCopy(
  hosts: HostSet,
  { host, instance }: Found,
  graceS: number,
  beforeRemoval: (() => Promise<void>) | undefined,
): Promise<void> {
  await hosts.decided(host);
  if (!host.isGivenUp) await host.ask((engine) => engine.stop(instance.id, graceS, beforeRemoval));
}

/**
 * One host says which image it is. The others that answer pull the same one now: a start has less time than a pull. Where
 * that fails, it is pulled when an instance is started there.
 */
async function prepareOn(
  hosts: HostSet,
  image: string,
  variables: Record<string, string>,
  asked: ImageAccess = { login: null, isKnown: false },
  log?: Log,
): Promise<PreparedImage> {
  // Of what one of several hosts has alone, the others could start nothing.
  const access = hosts.all.length > 1 ? { ...asked, mayBeLocal: false } : asked;
  await hosts.isReady;
  const left = hosts.answering();
  let fault: unknown = hosts.noneAnswers();
  for (let host = left.shift(); host; host = left.shift()) {
    try {
      const prepared = await host.ask((engine) => engine.prepare(image, variables, access));
      const pinned = pinImage(image, prepared.digest);
      const pulls = hosts.answering().filter((other) => other !== host);
      await Promise.all(
        pulls.map((other) =>
          other
            .ask((engine) => engine.prepare(pinned, variables, { ...access, isKnown: true }))
            .catch((error) => log?.warn({ err: error, host: other.name, image }, 'not pulled on one of the hosts')),
        ),
      );
      return prepared;
    } catch (error) {
      fault = error;
      if (!mayBeElsewhere(error, access)) break;
    }
  }
  throw asked.mayBeLocal ? needsRegistry(fault, 'a region of several hosts needs it in a registry') : fault;
}

/** Another host answers, or still has the image that has run before and needs no registry. */
function mayBeElsewhere(error: unknown, { isKnown }: ImageAccess): boolean {
  if (!(error instanceof EngineError)) return false;
  return error.fault === 'unavailable' || (isKnown && error.fault.startsWith('registry_'));
}

/** A host that does not answer whether it lives within this time is away. */
const hostProbeMs = 3000;

export async function openDockerHosts(options: DockerOptions[], graceMs: number, log?: Log): Promise<InstanceEngine> {
  const names = hostNames(options.map(({ address }) => address ?? defaultDockerSocket));
  const engines = await Promise.all(
    options.map(async (host, turn) => ({
      name: names[turn]!,
      engine: await createDockerEngine({ ...host, turn, timeouts: { probe: hostProbeMs, ...host.timeouts } }),
    })),
  );
  return createDockerHosts({ engines, graceMs, log });
}

/** The machine of each, or the address where one machine has several. */
function hostNames(addresses: string[]): string[] {
  const nodes = addresses.map((address) => reachOf(address).node);
  return addresses.map((address, i) => {
    const isOnly = nodes.filter((node) => node === nodes[i]).length === 1;
    return isOnly ? nodes[i]! : (address.split('?')[0] ?? address);
  });
}

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
  if (error instanceof AnswerLost || error instanceof EngineTimeout) return true;
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
  return code !== undefined && !unreached.has(code);
}

/**
 * Starts instances, each on one host. The hosts say where an instance is. What was started since they were last
 * asked, or got no answer, is remembered here.
 */
class HostStarts {
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
    const found = await this.#hosts.instances();
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
      await host.listAgain();
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
