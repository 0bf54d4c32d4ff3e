// What an instance is as a container, and the reverse.
import type { ContainerCreateOptions, ContainerInfo } from 'dockerode';
import { pinImage } from '../../contract/image-reference.ts';
import type { EngineInstance, InstanceSpec } from '../engine.ts';
import type { Reach } from './client.ts';

const label = {
  installation: 'sluice.installation',
  instance: 'sluice.instance',
  project: 'sluice.project',
  environment: 'sluice.environment',
  revision: 'sluice.revision',
};

/** Enough for a web service; one that runs away ends (137) or slows down alone, and its neighbours do not. */
const limits = {
  Memory: 512 * 1024 * 1024,
  // The same as Memory: none of it in swap, where it would slow the whole machine.
  MemorySwap: 512 * 1024 * 1024,
  NanoCpus: 1_000_000_000,
  // Threads count too: a JVM or a Go program has dozens, a fork bomb thousands.
  PidsLimit: 512,
};

/**
 * Of what Docker grants by default, what a web service has no use for. Left are those with which a usual entry point
 * prepares its files, takes a low port and becomes another user.
 */
const needlessCapabilities = ['AUDIT_WRITE', 'MKNOD', 'NET_RAW', 'SETFCAP', 'SETPCAP', 'SYS_CHROOT'];

export const containerName = (installation: string, id: string): string => `sluice-${installation}-${id}`;

export const labelFilter = (installation: string): string => `${label.installation}=${installation}`;

export function isInstance(labels: Record<string, string>, installation: string, id: string): boolean {
  return labels[label.installation] === installation && labels[label.instance] === id;
}

export function createOptions(spec: InstanceSpec, installation: string, { bind }: Reach): ContainerCreateOptions {
  const port = `${spec.port}/tcp`;
  const variables = {
    DEPLOY_PROJECT: spec.project,
    DEPLOY_ENVIRONMENT: spec.environment,
    DEPLOY_REVISION: `r${spec.revision}`,
    DEPLOY_INSTANCE: spec.id,
    ...spec.variables,
    PORT: String(spec.port),
  };
  return {
    name: containerName(installation, spec.id),
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
      ...limits,
      SecurityOpt: ['no-new-privileges'],
      CapDrop: needlessCapabilities,
      // A first process that passes signals on and buries orphans, which few programs do.
      Init: true,
      // What ended is replaced by the keeper, which sees all of an environment.
      RestartPolicy: { Name: 'no' },
      PortBindings: { [port]: [{ HostIp: bind, HostPort: '' }] },
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '2' } },
    },
  };
}

/** A container is created and then started; what is between the two for longer than this was left by a crash. */
const startsWithinMs = 120_000;

/** null: on its way out. */
export function instanceOf(info: ContainerInfo, { host }: Reach, nowMs: number): EngineInstance | null {
  if (info.State === 'removing') return null;
  const forgotten = info.State === 'created' && nowMs - info.Created * 1000 > startsWithinMs;
  const ended = forgotten || info.State === 'exited' || info.State === 'dead' || info.State === 'stopped';
  const published = info.Ports?.find((port) => port.Type === 'tcp' && port.PublicPort);
  const exitCode = /^Exited \((\d+)\)/.exec(info.Status)?.[1];
  return {
    id: info.Labels[label.instance] ?? '',
    project: info.Labels[label.project] ?? '',
    environment: info.Labels[label.environment] ?? '',
    revision: Number(info.Labels[label.revision]),
    state: ended ? 'exited' : 'running',
    address: ended || !published?.PublicPort ? null : { host, port: published.PublicPort },
    exitCode: ended && exitCode !== undefined ? Number(exitCode) : null,
  };
}
