// Creates, starts and removes the container of an instance.
import { pinImage } from '../../contract/references.ts';
import { EngineError, type ImageAccess, type InstanceSpec } from '../engine.ts';
import { containerName, createOptions, isInstance } from './container.ts';
import type { Reach } from './docker-address.ts';
import type { ContainerConfig, ContainerInspectInfo } from './docker-api.ts';
import { type DockerClient, isErrorResponse, nullOnStatus } from './docker-client.ts';
import type { ProjectNetworks } from './project-networks.ts';

interface DockerContext {
  client: DockerClient;
  installation: string;
  reach: Reach;
  networks: ProjectNetworks;
  pull(image: string, access: ImageAccess): Promise<unknown>;
  disk: DiskLimit;
}

const portAttempts = 5;
const removalPollMs = 50;

/** Creates and starts the container. One that was started before, even if it has ended since, is left alone. */
export async function startInstance(context: DockerContext, spec: InstanceSpec): Promise<void> {
  const { client, installation } = context;
  const { docker, call, timeouts } = client;
  const name = containerName(installation, spec.id);
  try {
    await createContainer(context, spec).catch(async (error) => {
      // The image was removed since it was prepared.
      if (!isErrorResponse(error, 404)) throw error;
      await context.pull(pinImage(spec.image, spec.digest), { login: spec.login ?? null, isKnown: true });
      await createContainer(context, spec);
    });
  } catch (error) {
    if (!isNameTaken(error)) throw error;
    const found = await call(timeouts.read, 'start_failed', (signal) =>
      docker.request<ContainerInspectInfo>('GET', `/containers/${name}/json`, { signal }),
    );
    if (!isInstance(found.Config.Labels, installation, spec.id)) throw error;
    if (!isUnstarted(found)) return;
  }
  await startContainer(client, name, spec.hostPort);
}

async function createContainer(context: DockerContext, spec: InstanceSpec): Promise<void> {
  const { client, installation, reach, networks, disk } = context;
  const { docker, change, timeouts } = client;
  const config = createOptions(spec, installation, reach, await networks.ensure(spec.project));
  const query = { name: containerName(installation, spec.id) };
  try {
    await disk.create(config, (body) =>
      change(timeouts.change, 'start_failed', (signal) =>
        docker.request('POST', '/containers/create', { query, body, signal }),
      ),
    );
  } catch (error) {
    throw tooManyCpus(error, spec) ?? error;
  }
}

/** Docker refuses more CPUs than there are. (It takes any amount of memory.) */
function tooManyCpus(error: unknown, { resources }: InstanceSpec): EngineError | null {
  const available = error instanceof EngineError && /only (\d+) CPUs? available/.exec(error.message)?.[1];
  if (!available) return null;
  const message = `it is to have ${resources.cpus} CPUs, and the machine has ${available}: lower resources.cpus`;
  return new EngineError('start_failed', message, error);
}

/** Docker responds with 409, Podman with another status and this message. */
const isNameTaken = (error: unknown): boolean =>
  isErrorResponse(error, 409) || (isErrorResponse(error) && /name .* is already in use/.test(error.message));

const isUnstarted = ({ State }: ContainerInspectInfo): boolean =>
  ['created', 'configured', 'initialized'].includes(State.Status);

/** A container that cannot start is removed: the error has the reason, and nothing else would clean it up. */
async function startContainer(client: DockerClient, name: string, hostPort: number | null): Promise<void> {
  const { docker, change, timeouts } = client;
  for (let attempt = 1; ; attempt++) {
    try {
      await nullOnStatus([304], () =>
        change(timeouts.change, 'start_failed', (signal) =>
          docker.request('POST', `/containers/${name}/start`, { signal }),
        ),
      );
      return;
    } catch (error) {
      if (!(error instanceof EngineError) || error.fault !== 'start_failed') throw error;
      const isPortTaken = /address already in use|port is already allocated|map port/.test(error.message);
      if (isPortTaken && hostPort !== null) {
        // It would start at this port only, however often: the next attempt has to make another.
        await removeContainer(client, name);
        throw new EngineError('port_taken', error.message, error);
      }
      // Another program took the port that Docker had chosen; the next attempt chooses another.
      if (isPortTaken && attempt < portAttempts) continue;
      await removeContainer(client, name).catch(() => {});
      throw error;
    }
  }
}

export async function removeContainer({ docker, change, timeouts }: DockerClient, name: string): Promise<void> {
  const query = { force: true, v: true };
  const giveUpAt = performance.now() + timeouts.change;
  for (;;) {
    try {
      await change(timeouts.change, 'unavailable', (signal) =>
        docker.request('DELETE', `/containers/${name}`, { query, signal }),
      );
      return;
    } catch (error) {
      if (isErrorResponse(error, 404)) return;
      // A removal is already under way: wait until Docker no longer knows the name.
      if (!isErrorResponse(error, 409) || performance.now() > giveUpAt) throw error;
      await new Promise((resolve) => setTimeout(resolve, removalPollMs));
    }
  }
}

/**
 * Limits what an instance may write to its own file system, where the storage of Docker can: overlay2 on XFS with
 * project quotas, Btrfs, ZFS. Elsewhere Docker refuses to create such a container, and it is created without a limit.
 */
export class DiskLimit {
  readonly #size: string;
  #isSupported = true;

  constructor(mb: number) {
    this.#size = `${mb}M`;
  }

  async create(config: ContainerConfig, create: (config: ContainerConfig) => Promise<unknown>): Promise<void> {
    if (this.#isSupported) {
      try {
        await create({ ...config, HostConfig: { ...config.HostConfig, StorageOpt: { size: this.#size } } });
        return;
      } catch (error) {
        if (!isErrorResponse(error) || !/storage[- ]?opt|pquota|quota/i.test(error.message)) throw error;
        this.#isSupported = false;
      }
    }
    await create(config);
  }
}
