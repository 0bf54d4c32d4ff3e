// Connections to receivers. A name is resolved once; every answer is judged, and the connection goes to an address that
// was judged, so an answer that changes in between changes nothing. Addresses written out are judged the same way.
import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import { type AddressPolicy, mayConnect } from '../../lib/address.ts';

export type Lookup = (hostname: string) => Promise<LookupAddress[]>;

export const systemLookup: Lookup = (hostname) => lookup(hostname, { all: true, order: 'verbatim' });

/** The receiver is at an address that nobody may make the service talk to. */
export class AddressRefused extends Error {
  constructor(hostname: string) {
    super(`${hostname} is not a public address, or leads to one that is not`);
  }
}

/** The addresses a host may be reached at. Throws where any of them is not allowed. */
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

/** For undici. The name stays what TLS and the Host header go by; only the socket uses the address. */
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
