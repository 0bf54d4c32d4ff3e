// Who sent a request: the other end of its connection or, where that is a trusted proxy, the client it forwards for.
// What any other client says about the client is replaced by what this proxy saw.
import { isIPv6, type Socket } from 'node:net';
import { isAmong, parseAddress, type Range } from '../../lib/address.ts';
import { hostNameOf } from './read-request.ts';

export interface Client {
  address: string;
  /** A Forwarded header up to the host (RFC 7239). */
  forwardedPrefix: string;
  proto: string;
  port: string;
  /** The host name of its TLS handshake, lower case; null: it came without TLS. */
  serverName: string | null;
}

const clientKey = Symbol('client');

/** The other end of a connection. It is kept with the socket, because all requests of a connection share it. */
export function clientOf(
  socket: Socket & { [clientKey]?: Client; encrypted?: boolean; servername?: string | false | null },
): Client {
  const known = socket[clientKey];
  if (known) return known;
  const address = (socket.remoteAddress ?? 'unknown').replace(/^::ffff:(?=\d+\.)/, '');
  const client = describeClient({
    address,
    proto: socket.encrypted ? 'https' : 'http',
    port: String(socket.localPort),
    serverName: socket.encrypted ? hostNameOf(socket.servername || '') : null,
  });
  socket[clientKey] = client;
  return client;
}

export function describeClient(known: Omit<Client, 'forwardedPrefix'>): Client {
  const node = isIPv6(known.address) ? `"[${known.address}]"` : known.address;
  return { ...known, forwardedPrefix: `for=${node};proto=${known.proto};host="` };
}

/** The host is a known one, with a port at most, so it needs no quoting. */
export function addForwardedHeaders(
  headers: string[],
  { address, forwardedPrefix, proto, port }: Client,
  host: string,
): void {
  headers.push('X-Forwarded-For', address, 'X-Forwarded-Proto', proto, 'X-Forwarded-Host', host);
  headers.push('X-Forwarded-Port', port, 'Forwarded', `${forwardedPrefix}${host}"`);
}

/**
 * The client that a trusted proxy forwards for; a peer that is no trusted proxy is the client itself. X-Forwarded-For
 * is read from its end: only what trusted proxies appended to it can be relied on.
 */
export function clientBehindProxy(peer: Client, raw: readonly string[], trusted: readonly Range[]): Client {
  if (!isAmong(peer.address, trusted)) return peer;
  let chain = '';
  let proto = peer.proto;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    if (name === 'x-forwarded-for') chain = chain === '' ? raw[i + 1]! : `${chain},${raw[i + 1]!}`;
    else if (name === 'x-forwarded-proto' && /^https?$/.test(raw[i + 1]!)) proto = raw[i + 1]!;
  }
  const addresses = chain.split(',').map((address) => address.trim());
  const address = addresses.findLast((one) => !isAmong(one, trusted));
  const isKnown = address !== undefined && parseAddress(address) !== null;
  return describeClient({ ...peer, address: isKnown ? address : peer.address, proto });
}
