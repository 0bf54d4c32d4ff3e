// Connections to receivers. A host name is resolved once, every address it resolves to is checked, and the connection
// goes to a checked address, so a DNS answer that changes in between has no effect. IP addresses in the URL are checked
// too.
import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP, type Socket } from 'node:net';
import { type AddressPolicy, mayConnect } from '../../lib/address.ts';
import { buildConnector } from '../../lib/http/undici.ts';

export type Lookup = (hostname: string) => Promise<LookupAddress[]>;

export const systemLookup: Lookup = (hostname) => lookup(hostname, { all: true, order: 'verbatim' });

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
): Promise<LookupAddress[]> {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  const family = isIP(bare);
  const answers = family === 0 ? await resolve(bare) : [{ address: bare, family }];
  if (answers.length === 0) throw new Error(`${bare} has no address`);
  if (!answers.every(({ address }) => mayConnect(address, policy))) throw new AddressRefused(bare);
  return answers;
}

/** For undici. TLS and the Host header still use the host name; only the socket uses the address. */
export function guardedConnector(policy: AddressPolicy, resolve: Lookup, timeoutMs: number): buildConnector.connector {
  const connect = buildConnector({ timeout: timeoutMs });
  return (options, callback) => {
    resolveAllowed(options.hostname, policy, resolve).then(
      ([first]) =>
        connect({ ...options, hostname: first!.address }, (error, socket) => {
          if (error) return callback(error, null);
          const reached = (socket as Socket).remoteAddress ?? '';
          if (mayConnect(reached, policy)) return callback(null, socket!);
          (socket as Socket).destroy();
          callback(new AddressRefused(reached), null);
        }),
      (error: Error) => callback(error, null),
    );
  };
}
