// The settings of regions and their engines, and the form of SLUICE_REGIONS.
import { invalid, optional, portRange, wholeNumber } from '../lib/setting-parsers.ts';
import { checkAddress, defaultDockerSocket } from './docker/docker-address.ts';
import { defaultSubnetPool, parseSubnetPool } from './docker/subnets.ts';
import { kubernetesSettings } from './kubernetes/kubernetes-settings.ts';
import { parseMirrors } from './registry/registry-endpoints.ts';

export const engineSettings = {
  SLUICE_REGIONS: {
    default: 'local=auto',
    about:
      'Regions and their engines, comma-separated: `name=auto`, `name=docker:…`, `name=kubernetes:…` or `name=standin:`.',
    parse: parseRegions,
  },
  SLUICE_DOCKER_NETWORKS: {
    default: defaultSubnetPool,
    about:
      'Address range for Docker networks, one network per project, and the size of each. Reserve the range for Sluice.',
    parse: parseSubnetPool,
  },
  SLUICE_DOCKER_HOST_GRACE_S: {
    default: '30',
    about:
      'Seconds that one of several Docker hosts may be unreachable before its instances are replaced on the others. 1 to 3600.',
    parse: wholeNumber(1, 3600),
  },
  SLUICE_DOCKER_DISK_MB: {
    default: '10240',
    about: 'Disk quota of a container in MiB, 16 to 16777216. Needs overlay2 on XFS with `pquota`, Btrfs or ZFS.',
    parse: wholeNumber(16, 16_777_216),
  },
  SLUICE_INSTANCE_PORTS: {
    default: '20000-29999',
    about:
      'Host ports for instances, at least 100. Choose a range outside `net.ipv4.ip_local_port_range`. Ports in use are skipped.',
    parse: portRange(100),
  },
  SLUICE_PULL_TIMEOUT_S: {
    default: '1800',
    about: 'Seconds that pulling an image may take, retries included. Then the deployment fails. 1 to 86400.',
    parse: wholeNumber(1, 86_400),
  },
  SLUICE_REGISTRY_MIRRORS: {
    default: '',
    about:
      'Registry mirrors, comma-separated: `docker.io=https://mirror.example`. Kubernetes regions resolve tags there first, without a login.',
    parse: parseMirrors,
  },
  ...kubernetesSettings,
};

export type EngineChoice =
  | { kind: 'auto' }
  | { kind: 'standin' }
  | { kind: 'docker'; address: string | null }
  | { kind: 'docker-hosts'; addresses: string[] }
  | { kind: 'kubernetes'; context: string | null };

/** A choice that names an engine. */
export type OpenableChoice = Exclude<EngineChoice, { kind: 'auto' }>;

export interface RegionSetting {
  name: string;
  engine: EngineChoice;
}

/** As it is set, and as it is remembered. */
export function engineText(choice: OpenableChoice): string {
  switch (choice.kind) {
    case 'standin':
      return 'standin:';
    case 'docker':
      return `docker:${choice.address ?? ''}`;
    case 'docker-hosts':
      return choice.addresses.map((address) => `docker:${address}`).join('+');
    case 'kubernetes':
      return `kubernetes:${choice.context ?? ''}`;
  }
}

/** What a region has been on and is not any more, each as it was set; empty where hosts were only added. */
export function leftBehind(before: string, now: string): string[] {
  const stays = new Set(partsOf(now));
  return partsOf(before).filter((part) => !stays.has(part));
}

const partsOf = (value: string): string[] => value.split(/\+(?=auto(?:\+|$)|(?:standin|docker|kubernetes):)/);

export function parseEngine(value: string): EngineChoice {
  const parts = partsOf(value);
  return parts.length === 1 ? parseOne(value) : parseHosts(parts);
}

const maxHosts = 100;

function parseHosts(parts: string[]): EngineChoice {
  const addresses = parts.map((part) => {
    const engine = parseOne(part);
    if (engine.kind !== 'docker') return invalid(`"${part}" cannot be one of several hosts: only docker:ADDRESS can`);
    return engine.address ?? defaultDockerSocket;
  });
  if (addresses.length > maxHosts) invalid(`a region may have ${maxHosts} hosts`);
  if (new Set(addresses).size < addresses.length) invalid(`"${parts.join('+')}" names a host twice`);
  return { kind: 'docker-hosts', addresses };
}

function parseOne(value: string): EngineChoice {
  const [kind, ...rest] = value.split(':');
  const argument = optional(rest.join(':'));
  if (kind === 'auto' && argument === null) return { kind };
  if (kind === 'standin' && argument === null) return { kind };
  if (kind === 'docker') return { kind, address: argument === null ? null : checkAddress(argument) };
  if (kind === 'kubernetes') return { kind, context: argument };
  return invalid(
    `"${value}" is not an engine: auto, standin:, docker:[address], several docker:ADDRESS joined by +, or kubernetes:[context]`,
  );
}

/** SLUICE_REGIONS: comma-separated `name=engine`. */
export function parseRegions(value: string): RegionSetting[] {
  const seen = new Set<string>();
  return value.split(',').map((item) => {
    const [name = '', choice] = item.split(/=(.*)/s);
    if (!/^[a-z][a-z0-9-]{0,38}$/.test(name)) invalid(`"${item}" must be name=engine, as in local=auto`);
    if (seen.has(name)) invalid(`the region ${name} is named twice`);
    seen.add(name);
    return { name, engine: parseEngine(choice ?? 'auto') };
  });
}
