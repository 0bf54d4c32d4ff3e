// The container of an instance: what to create, and how to read it back.
import { pinImage, revisionId } from '../../contract/references.ts';
import type { EngineChange, EngineEnd, EngineInstance, InstanceSpec, Resources } from '../engine.ts';
import type { Reach } from './docker-address.ts';
import type { ContainerConfig, ContainerInfo } from './docker-api.ts';

export const label = {
  installation: 'sluice.installation',
  instance: 'sluice.instance',
  project: 'sluice.project',
  environment: 'sluice.environment',
  revision: 'sluice.revision',
};

/** A runaway instance is killed (137) or throttled without slowing down its neighbours. */
function limitsOf({ memory_mb, cpus }: Resources) {
  const Memory = memory_mb * 1024 * 1024;
  return {
    Memory,
    // Equal to Memory, so that the container gets no swap, which would slow down the whole machine.
    MemorySwap: Memory,
    NanoCpus: Math.round(cpus * 1e9),
    // Includes threads: a JVM or a Go program has dozens, a fork bomb thousands.
    PidsLimit: 512,
  };
}

/**
 * Capabilities that Docker grants by default and a web service does not need. The remaining ones let a typical entry
 * point prepare its files, bind a low port and switch to another user.
 */
const needlessCapabilities = ['AUDIT_WRITE', 'MKNOD', 'NET_RAW', 'SETFCAP', 'SETPCAP', 'SYS_CHROOT'];

export const containerName = (installation: string, id: string): string => `sluice-${installation}-${id}`;

export const labelFilter = (installation: string): string => `${label.installation}=${installation}`;

export function isInstance(labels: Record<string, string>, installation: string, id: string): boolean {
  return labels[label.installation] === installation && labels[label.instance] === id;
}

/** Whose container has these labels. */
export function ownerOf(labels: Record<string, string>): EngineChange {
  const { [label.project]: project, [label.environment]: environment } = labels;
  return project !== undefined && environment !== undefined ? { project, environment } : null;
}

/** `network`: the name of the network of its project. */
export function createOptions(
  spec: InstanceSpec,
  installation: string,
  { bind }: Reach,
  network: string,
): ContainerConfig {
  const port = `${spec.port}/tcp`;
  const variables = {
    DEPLOY_PROJECT: spec.project,
    DEPLOY_ENVIRONMENT: spec.environment,
    DEPLOY_REVISION: revisionId(spec.revision),
    DEPLOY_INSTANCE: spec.id,
    ...spec.variables,
    PORT: String(spec.port),
  };
  return {
    Image: pinImage(spec.image, spec.digest),
    Labels: {
      [label.installation]: installation,
      [label.instance]: spec.id,
      [label.project]: spec.project,
      [label.environment]: spec.environment,
      [label.revision]: String(spec.revision),
    },
    Env: Object.entries(variables).map(([name, value]) => `${name}=${value}`),
    ExposedPorts: { [port]: {} },
    HostConfig: {
      ...limitsOf(spec.resources),
      NetworkMode: network,
      SecurityOpt: ['no-new-privileges'],
      CapDrop: needlessCapabilities,
      // Docker's init forwards signals and reaps orphaned processes, which few programs do themselves.
      Init: true,
      // The keeper replaces instances that ended: it knows the whole environment, Docker does not.
      RestartPolicy: { Name: 'no' },
      PortBindings: { [port]: [{ HostIp: bind, HostPort: String(spec.hostPort ?? '') }] },
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '2' } },
    },
  };
}

/** How a container ended; `withEngine`: because Docker itself did. */
export interface ContainerEnd extends EngineEnd {
  withEngine: boolean;
}

/** A container that was created but not started within this time was left behind by a crash. */
const startsWithinMs = 120_000;

/** Null if the container is being removed. */
export function instanceOf(
  info: ContainerInfo,
  { host, node }: Reach,
  nowMs: number,
  end?: ContainerEnd,
): EngineInstance | null {
  if (info.State === 'removing') return null;
  const abandoned = info.State === 'created' && nowMs - info.Created * 1000 > startsWithinMs;
  const ended = abandoned || info.State === 'exited' || info.State === 'dead' || info.State === 'stopped';
  const published = info.Ports?.find((port) => port.Type === 'tcp' && port.PublicPort);
  const exitCode = /^Exited \((\d+)\)/.exec(info.Status)?.[1];
  return {
    id: info.Labels[label.instance] ?? '',
    project: info.Labels[label.project] ?? '',
    environment: info.Labels[label.environment] ?? '',
    revision: Number(info.Labels[label.revision]),
    state: ended ? 'exited' : info.State === 'created' ? 'created' : 'running',
    address: ended || !published?.PublicPort ? null : { host, port: published.PublicPort },
    exitCode: ended && exitCode !== undefined ? Number(exitCode) : null,
    node,
    ...(end && { ended: { at: end.at, reason: end.reason, memoryLimitMb: end.memoryLimitMb } }),
    ...(end?.withEngine && { endedWithEngine: true as const }),
  };
}
