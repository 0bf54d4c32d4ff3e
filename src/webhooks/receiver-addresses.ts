// Which addresses webhooks may reach. A host name is resolved once, every address it resolves to is checked, and the
// connection goes to a checked address, so a DNS answer that changes in between has no effect. IP addresses in the URL
// are checked too.
import { isIP, type Socket } from 'node:net';
import { type AddressPolicy, isLoopback, isOnlyListed, mayConnect, parseAddress, type Range } from '../lib/address.ts';
import { createLookup, type Lookup, type ResolvedAddress } from '../lib/dns-lookup.ts';
import { buildConnector } from '../lib/undici.ts';

export type { Lookup } from '../lib/dns-lookup.ts';
export const systemLookup: Lookup = createLookup();

/** A request waits for it. */
const lookupTimeoutMs = 6000;

/** The receiver is at an address that the service must not connect to. */
export class AddressRefused extends Error {
  constructor(hostname: string) {
    super(`${hostname} is not a public address, or leads to one that is not`);
  }
}

/** The addresses of a host. Throws if any of them is not allowed. */
export async function resolveAllowed(
  hostname: string,
  policy: AddressPolicy,
  resolve: Lookup,
): Promise<ResolvedAddress[]> {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  const family = isIP(bare);
  const answers = family === 0 ? await inTime(bare, resolve) : [{ address: bare, family }];
  if (answers.length === 0) throw new Error(`${bare} has no address`);
  if (!answers.every(({ address }) => mayConnect(address, policy))) throw new AddressRefused(bare);
  return answers;
}

async function inTime(hostname: string, resolve: Lookup): Promise<ResolvedAddress[]> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`DNS does not answer for ${hostname}`)), lookupTimeoutMs);
  return Promise.race([resolve(hostname), late]).finally(() => clearTimeout(timer));
}

interface GuardedConnector {
  /** For undici. TLS and the Host header still use the host name; only the socket uses the address. */
  connect: buildConnector.connector;
  /** Whether a connection to this origin is open that leads to an address which is allowed only by its range. */
  leadsInside(origin: string): boolean;
}

export function guardedConnector(policy: AddressPolicy, resolve: Lookup, timeoutMs: number): GuardedConnector {
  const connectTo = buildConnector({ timeout: timeoutMs });
  const inside = new OpenConnections();
  const connect: buildConnector.connector = (options, callback) => {
    resolveAllowed(options.hostname, policy, resolve).then(
      ([first]) =>
        connectTo({ ...options, hostname: first!.address }, (error, socket) => {
          if (error) return callback(error, null);
          const reached = (socket as Socket).remoteAddress ?? '';
          if (mayConnect(reached, policy)) {
            if (isOnlyListed(reached, policy)) inside.add(originOf(options), socket as Socket);
            return callback(null, socket!);
          }
          (socket as Socket).destroy();
          callback(new AddressRefused(reached), null);
        }),
      (error: Error) => callback(error, null),
    );
  };
  return { connect, leadsInside: (origin) => inside.has(origin) };
}

function originOf({ protocol, hostname, port }: buildConnector.Options): string {
  const host = isIP(hostname) === 6 ? `[${hostname}]` : hostname;
  return new URL(`${protocol}//${host}${port ? `:${port}` : ''}`).origin;
}

/** How many connections of an origin are open. */
class OpenConnections {
  readonly #counts = new Map<string, number>();

  add(origin: string, socket: Socket): void {
    this.#counts.set(origin, (this.#counts.get(origin) ?? 0) + 1);
    socket.once('close', () => {
      const rest = this.#counts.get(origin)! - 1;
      if (rest > 0) this.#counts.set(origin, rest);
      else this.#counts.delete(origin);
    });
  }

  has(origin: string): boolean {
    return this.#counts.has(origin);
  }
}

export interface Exposure {
  /** Where the API listens. */
  host: string;
  /** Whether the API runs in this process: otherwise nothing is known of who can reach it. */
  servesApi: boolean;
  trustedProxies: readonly Range[];
  /** The addresses people use, as far as they are set. */
  urls: readonly (string | null)[];
}

/**
 * Webhooks may reach loopback while only this machine can reach the service: its callers can reach what runs beside it
 * anyway. A proxy in front of the service, or a public address, ends that. No I/O.
 */
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
