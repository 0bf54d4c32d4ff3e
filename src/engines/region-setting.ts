// SLUICE_REGIONS: comma-separated `name=engine`.
import { invalid, optional } from '../lib/setting-parsers.ts';
import { checkAddress, defaultDockerSocket } from './docker/address.ts';

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
