// Several Docker hosts as one engine. Instances are spread over the hosts that answer. What runs on a host that goes away
// counts as there for a grace period, then as gone: it is replaced on the others, and removed when the host is back.
import { pinImage } from '../../../contract/image-reference.ts';
import type { Log } from '../../../lib/log.ts';
import { type EngineChange, EngineError, type ImageAccess, type PreparedImage } from '../../engine.ts';
import type { InstanceEngine } from '../../single-instances.ts';
import type { DockerEngine } from '../docker.ts';
import { type Found, HostSet } from './host-set.ts';
import { Starts } from './starts.ts';

export interface DockerHostsOptions {
  /** Each under a name of its own. */
  engines: { name: string; engine: DockerEngine }[];
  graceMs: number;
  log?: Log;
}

export function createDockerHosts({ engines, graceMs, log }: DockerHostsOptions): InstanceEngine {
  const listeners = new Set<(change: EngineChange) => void>();
  const onChange = () => {
    for (const listener of listeners) listener(null);
  };
  const hosts = new HostSet({ engines, graceMs, onChange, log });
  const starts = new Starts(hosts);

  /** undefined: there is no such instance. */
  const findHost = async (id: string) => {
    await hosts.isReady;
    return hosts.hostOf(id) ?? (await hosts.look()).get(id)?.host;
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
    list: async () => [...(await hosts.look()).values()].map(({ instance }) => instance),
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
    hosts: () => hosts.all.map(({ name, isAway }) => ({ name, available: !isAway })),
    close: () => hosts.close(),
  };
}

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
  access: ImageAccess = { login: null, isKnown: false },
  log?: Log,
): Promise<PreparedImage> {
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
      if (!mayBeElsewhere(error, access)) throw error;
      fault = error;
    }
  }
  throw fault;
}

/** Another host answers, or still has the image that has run before and needs no registry. */
function mayBeElsewhere(error: unknown, { isKnown }: ImageAccess): boolean {
  if (!(error instanceof EngineError)) return false;
  return error.fault === 'unavailable' || (isKnown && error.fault.startsWith('registry_'));
}
