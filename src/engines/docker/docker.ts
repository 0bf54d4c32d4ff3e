// Docker Engine API (or Podman's, which is compatible), over a socket or TCP. An instance is a container; all that is
// known of it is in its labels, so that any process of the installation finds it again.
import type { ContainerInspectInfo } from 'dockerode';
import { pinImage } from '../../contract/image-reference.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { type Engine, EngineError, type InstanceSpec } from '../engine.ts';
import type { RegistryAuths } from '../registry/auths.ts';
import {
  connectDocker,
  type DockerClient,
  type DockerTimeouts,
  defaultDockerSocket,
  defaultDockerTimeouts,
  get,
  isAnswer,
  reachOf,
} from './client.ts';
import { containerName, createOptions, instanceOf, isInstance, labelFilter } from './container.ts';
import { prepareImage } from './image.ts';
import { readLogFrames } from './logs.ts';

export interface DockerOptions {
  /** Path of a socket, or `tcp://host:port`; null: the usual socket. */
  address: string | null;
  /** Whose instances these are: letters, digits, `_`, `.` and `-`. Others on the same engine are neither seen nor touched. */
  installation: string;
  /** Asked for every pull. */
  registryAuths?: () => RegistryAuths;
  timeouts?: Partial<DockerTimeouts>;
  clock?: Clock;
}

const portAttempts = 5;
const removalPollMs = 50;

export async function createDockerEngine(options: DockerOptions): Promise<Engine> {
  const { installation, registryAuths = () => new Map(), clock = systemClock } = options;
  const address = options.address ?? defaultDockerSocket;
  const client = await connectDocker(address, { ...defaultDockerTimeouts, ...options.timeouts });
  const { docker, call, timeouts } = client;
  const reach = reachOf(address);
  const containerOf = (id: string) => docker.getContainer(containerName(installation, id));
  const starting = new Map<string, Promise<void>>();

  const prepare = (image: string) => prepareImage(client, image, registryAuths);

  const create = async (spec: InstanceSpec) => {
    await call(timeouts.change, 'start_failed', (abortSignal) =>
      docker.createContainer({ ...createOptions(spec, installation, reach), abortSignal }),
    );
  };

  const start = async (spec: InstanceSpec) => {
    try {
      await create(spec).catch(async (error) => {
        // The image was removed since it was prepared.
        if (!isAnswer(error, 404)) throw error;
        await prepare(pinImage(spec.image, spec.digest));
        await create(spec);
      });
    } catch (error) {
      if (!isNameTaken(error)) throw error;
      const found = await call(timeouts.read, 'start_failed', (abortSignal) =>
        containerOf(spec.id).inspect({ abortSignal }),
      );
      if (!isInstance(found.Config.Labels, installation, spec.id)) throw error;
      if (!isUnstarted(found)) return;
    }
    await startContainer(client, containerName(installation, spec.id));
  };

  return {
    kind: 'docker',
    async probe() {
      await call(timeouts.probe, 'unavailable', (abortSignal) => get(docker, '/_ping', abortSignal));
    },
    async prepare(image) {
      return { digest: await prepare(image) };
    },
    // Two at once must not start it twice: the second start of a program that ended at once would run it again.
    start(spec) {
      const running = starting.get(spec.id) ?? start(spec).finally(() => starting.delete(spec.id));
      starting.set(spec.id, running);
      return running;
    },
    async list() {
      const filters = { label: [labelFilter(installation)] };
      const found = await call(timeouts.read, 'unavailable', (abortSignal) =>
        docker.listContainers({ all: true, filters, abortSignal }),
      );
      const nowMs = clock.now();
      return found.map((info) => instanceOf(info, reach, nowMs)).filter((instance) => instance !== null);
    },
    async stop(id, graceS) {
      const timeoutMs = graceS * 1000 + timeouts.stopMargin;
      await unless([304, 404], () =>
        call(timeoutMs, 'unavailable', (abortSignal) => containerOf(id).stop({ t: Math.ceil(graceS), abortSignal })),
      );
      await removeContainer(client, containerName(installation, id));
    },
    async logs(id, { tail, sinceMs = 0 }) {
      if (tail <= 0) return [];
      const query = { stdout: true, stderr: true, timestamps: true, tail, since: sinceMs / 1000 };
      const data = await unless([404], () =>
        call(timeouts.read, 'unavailable', (abortSignal) =>
          containerOf(id).logs({ ...query, follow: false, abortSignal }),
        ),
      );
      return data ? readLogFrames(data).filter((line) => line.at > sinceMs) : [];
    },
    async close() {
      client.close();
    },
  };
}

/** Podman says so with another status. */
const isNameTaken = (error: unknown): boolean =>
  isAnswer(error, 409) || (isAnswer(error) && /name .* is already in use/.test(error.message));

const isUnstarted = ({ State }: ContainerInspectInfo): boolean =>
  ['created', 'configured', 'initialized'].includes(State.Status);

/** What cannot be started is removed: the reason is in the error, and nothing else would ever look at it. */
async function startContainer(client: DockerClient, name: string): Promise<void> {
  const { docker, call, timeouts } = client;
  for (let attempt = 1; ; attempt++) {
    try {
      await unless([304], () =>
        call(timeouts.change, 'start_failed', (abortSignal) => docker.getContainer(name).start({ abortSignal })),
      );
      return;
    } catch (error) {
      if (!(error instanceof EngineError) || error.fault !== 'start_failed') throw error;
      // The port that Docker chose was taken by someone else in between; it chooses another one.
      if (attempt < portAttempts && /address already in use|port is already allocated|map port/.test(error.message)) {
        continue;
      }
      await removeContainer(client, name).catch(() => {});
      throw error;
    }
  }
}

async function removeContainer({ docker, call, timeouts }: DockerClient, name: string): Promise<void> {
  const container = docker.getContainer(name);
  const giveUpAt = performance.now() + timeouts.change;
  for (;;) {
    try {
      await call(timeouts.change, 'unavailable', (abortSignal) =>
        container.remove({ force: true, v: true, abortSignal }),
      );
      return;
    } catch (error) {
      if (isAnswer(error, 404)) return;
      // Someone else is removing it: gone only when Docker no longer knows the name.
      if (!isAnswer(error, 409) || performance.now() > giveUpAt) throw error;
      await new Promise((resolve) => setTimeout(resolve, removalPollMs));
    }
  }
}

/** null where the answer has one of these statuses. */
async function unless<T>(statusCodes: number[], work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (isAnswer(error, ...statusCodes)) return null;
    throw error;
  }
}
