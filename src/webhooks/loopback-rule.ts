// Whether webhooks may reach loopback. They may while only this machine can reach the service: who can call it then can
// reach what runs beside it anyway. Something in front of the service, or a public address, ends that. No I/O.
import { isLoopback, parseAddress, type Range } from '../lib/address.ts';

export interface Exposure {
  /** Where the API listens. */
  host: string;
  /** Whether the API runs in this process: otherwise nothing is known of who can reach it. */
  servesApi: boolean;
  trustedProxies: readonly Range[];
  /** The addresses people use, as far as they are set. */
  urls: readonly (string | null)[];
}

export function mayReachLoopback({ host, servesApi, trustedProxies, urls }: Exposure): boolean {
  const hosts = urls.flatMap((url) => (url === null ? [] : [URL.parse(url)?.hostname ?? '']));
  return servesApi && trustedProxies.length === 0 && [host, ...hosts].every(isLoopbackHost);
}

export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  if (bare === 'localhost' || bare.endsWith('.localhost')) return true;
  const address = parseAddress(bare);
  return address !== null && isLoopback(address);
}
