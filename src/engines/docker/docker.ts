// The Docker Engine API (or Podman's compatible one), over a socket or TCP. An instance is a container. Everything known
// about it is in its labels, so that any process of the installation finds it again.
import { type Clock, systemClock } from '../../lib/clock.ts';
import {
  defaultLogBytes,
  type EngineInstance,
  type ImageAccess,
  type InstanceEngine,
  type InstanceSpec,
} from '../engine.ts';
import { containerName, instanceOf, labelFilter, ownerOf } from './container.ts';
import { createEnds, watchEvents } from './container-ends.ts';
import { DiskLimit, removeContainer, startInstance } from './container-lifecycle.ts';
import { followContainer, readLatestFrames } from './container-log.ts';
import { readUsage } from './container-usage.ts';
import { defaultDockerSocket, reachOf } from './docker-address.ts';
import type { ContainerInfo, ContainerInspectInfo } from './docker-api.ts';
import {
  connectDocker,
  type DockerTimeouts,
  defaultDockerTimeouts,
  nullOnStatus,
  probeChanges,
  probeReads,
} from './docker-client.ts';
import { ListeningPrograms } from './listening-ports.ts';
import { readLogFrames } from './log-frames.ts';
import { ProjectNetworks } from './project-networks.ts';
import { PulledImages } from './pulled-images.ts';
import { defaultSubnetPool, parseSubnetPool, type SubnetPool } from './subnets.ts';

export interface DockerOptions {
  /** Path of a socket, or `tcp://host:port`; null for the default socket. */
  address: string | null;
  /**
   * The installation that owns the instances: letters, digits, `_`, `.` and `-`. Instances of other installations on the
   * same engine are neither listed nor changed.
   */
  installation: string;
  /** Where the networks of projects get their subnets from. */
  subnetPool?: SubnetPool;
  /** The most that an instance may write, where Docker can limit it. */
  diskMb?: number;
  /** Which host of its region it is, from 0: two that share a machine do not choose the same subnet at once. */
  turn?: number;
  /** How often networks that nothing uses are looked for. */
  sweepEveryMs?: number;
  timeouts?: Partial<DockerTimeouts>;
  clock?: Clock;
}

export interface DatedInstance {
  instance: EngineInstance;
  /** By Docker's clock, in seconds. */
  createdAt: number;
}

export interface DockerEngine extends InstanceEngine {
  /** As list(), with when each was created. */
  listDated(): Promise<DatedInstance[]>;
}

export async function createDockerEngine(options: DockerOptions): Promise<DockerEngine> {
  const { installation, clock = systemClock } = options;
  const address = options.address ?? defaultDockerSocket;
  const client = await connectDocker(address, { ...defaultDockerTimeouts, ...options.timeouts });
  const { docker, call, timeouts } = client;
  const reach = reachOf(address);
  const pool = options.subnetPool ?? parseSubnetPool(defaultSubnetPool);
  const { turn = 0, sweepEveryMs = 60_000, diskMb = 10_240 } = options;
  const networks = new ProjectNetworks({ client, installation, pool, turn, sweepEveryMs });
  const images = new PulledImages(client, installation);
  const pull = (image: string, access: ImageAccess) => images.prepare(image, access, clock.now());
  const context = { client, installation, reach, networks, pull, disk: new DiskLimit(diskMb) };
  const pathOf = (id: string) => `/containers/${containerName(installation, id)}`;
  const starting = new Map<string, Promise<void>>();
  const endsOf = createEnds(client);
  const programs = new ListeningPrograms();

  const inspect = (id: string) =>
    nullOnStatus([404], () =>
      call(timeouts.read, 'unavailable', (signal) =>
        docker.request<ContainerInspectInfo>('GET', `${pathOf(id)}/json`, { signal }),
      ),
    );

  async function start(spec: InstanceSpec): Promise<void> {
    await startInstance(context, spec);
    if (programs.areVisible) return;
    // Whether processes can be seen from here shows while one runs, and matters once one has ended.
    const container = await inspect(spec.id).catch(() => null);
    if (container) await programs.portsOf(container);
  }

  async function listDated(): Promise<DatedInstance[]> {
    const query = { all: true, filters: { label: [labelFilter(installation)] } };
    const found = await call(timeouts.read, 'unavailable', (signal) =>
      docker.request<ContainerInfo[]>('GET', '/containers/json', { query, signal }),
    );
    const ends = await endsOf(found.filter(({ State }) => State === 'exited'));
    const nowMs = clock.now();
    // It must not hold up the list; what it did not remove, the next one does.
    networks.sweep(new Set(found.flatMap(({ Labels }) => ownerOf(Labels)?.project ?? [])), nowMs).catch(() => {});
    return found.flatMap((info) => {
      const instance = instanceOf(info, reach, nowMs, ends.get(info.Id));
      return instance ? [{ instance, createdAt: info.Created }] : [];
    });
  }

  return {
    kind: 'docker',
    publishesOn: [reach.host],
    async probe() {
      await probeReads(client);
      // Only then, because Docker logs every such question.
      if (client.changesHang()) await probeChanges(client);
    },
    prepare: (image, _variables, access = { login: null, isKnown: false }) => pull(image, access),
    // Concurrent starts of one id share one: otherwise the second would run a program again that has already ended.
    start(spec) {
      const running = starting.get(spec.id) ?? start(spec).finally(() => starting.delete(spec.id));
      starting.set(spec.id, running);
      return running;
    },
    listDated,
    list: async () => (await listDated()).map(({ instance }) => instance),
    async stop(id, graceS, beforeRemoval) {
      const timeoutMs = graceS * 1000 + timeouts.stopMargin;
      const query = { t: Math.ceil(graceS) };
      await nullOnStatus([304, 404], () =>
        call(timeoutMs, 'unavailable', (signal) => docker.request('POST', `${pathOf(id)}/stop`, { query, signal })),
      );
      await beforeRemoval?.();
      await removeContainer(client, containerName(installation, id));
    },
    async logs(id, { tail, sinceMs = 0, maxBytes = defaultLogBytes }) {
      if (tail <= 0) return [];
      const name = containerName(installation, id);
      const frames = await nullOnStatus([404], () =>
        call(timeouts.read, 'unavailable', (abortSignal) =>
          readLatestFrames(client, name, { tail, sinceMs, maxBytes, abortSignal }),
        ),
      );
      return frames ? readLogFrames(frames).filter((line) => line.at > sinceMs) : [];
    },
    follow: (id, after, signal) => followContainer(client, containerName(installation, id), after, signal),
    async listening(id) {
      const container = await inspect(id);
      const ports = container && (await programs.portsOf(container));
      return ports && { ...ports, exposed: await images.exposedPorts(container.Image) };
    },
    usage: (ids) => readUsage(client, installation, ids),
    async removeImages(kept, idleMs, isUrgent) {
      const isShort = isUrgent || (await images.isDiskShort());
      return images.remove({ kept, nowMs: clock.now(), idleMs, isShort });
    },
    countImages: () => images.count(),
    watch: (onChange) => watchEvents(client, installation, onChange),
    close: async () => client.close(),
  };
}
