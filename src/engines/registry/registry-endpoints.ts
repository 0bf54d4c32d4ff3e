// Where the registry of an image is asked: first its mirrors, then the registry itself.
import type { ImageReference } from '../../contract/references.ts';
import { isAmong, isLoopback, parseAddress, parseRange } from '../../lib/address.ts';
import { invalid } from '../../lib/setting-parsers.ts';

export interface Endpoint {
  /** `https://host[:port]`; `http://` only on loopback. */
  origin: string;
  /** A mirror is shown no login: it belongs to the registry. */
  isMirror: boolean;
}

/** By registry, as image references name it; each list in the order in which it is asked. */
export type Mirrors = ReadonlyMap<string, string[]>;

const hub = { name: 'docker.io', origin: 'https://registry-1.docker.io' };

export function endpointsOf({ registry }: ImageReference, mirrors: Mirrors): Endpoint[] {
  const own = registry === hub.name ? hub.origin : originOf(registry);
  const first = (mirrors.get(registry) ?? []).map((origin) => ({ origin, isMirror: true }));
  return [...first, { origin: own, isMirror: false }];
}

/** As Docker does: without TLS only where nobody can listen in. */
function originOf(host: string): string {
  return `${isLoopbackHost(new URL(`http://${host}`).hostname) ? 'http' : 'https'}://${host}`;
}

export function isLoopbackHost(hostname: string): boolean {
  const address = parseAddress(hostname.replace(/^\[(.*)\]$/, '$1'));
  return address ? isLoopback(address) : hostname === 'localhost';
}

/** Links between neighbours, where clouds answer with the credentials of the machine, and what is no single host. */
const refused = [
  '0.0.0.0/8',
  '169.254.0.0/16',
  '168.63.129.16/32',
  '100.100.100.200/32',
  '224.0.0.0/3',
  'fe80::/10',
  'fd00:ec2::/32',
  'ff00::/8',
].map((text) => parseRange(text)!);

/**
 * Whether no registry may be at this address. Those in a private network are allowed: many registries are, and what a tenant
 * learns from one is its status and the errors of the distribution specification, nothing else of its answer.
 */
export const isRefused = (address: string): boolean => isAmong(address, refused);

/** Comma-separated `registry=address`; a registry that is named again has another mirror. */
export function parseMirrors(value: string): Mirrors {
  const mirrors = new Map<string, string[]>();
  for (const item of value.split(',').filter((part) => part.trim() !== '')) {
    const [, registry = '', address = ''] = /^([^=/]+)=(.+)$/.exec(item.trim()) ?? [];
    const url = URL.parse(address);
    if (url?.pathname !== '/' || url.search !== '' || url.username !== '') {
      return invalid(`"${item}" must be registry=address, as in docker.io=https://mirror.example`);
    }
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopbackHost(url.hostname))) {
      return invalid(`"${item}" must have an address with https://, or one of this machine with http://`);
    }
    mirrors.set(registry, [...(mirrors.get(registry) ?? []), url.origin]);
  }
  return mirrors;
}
