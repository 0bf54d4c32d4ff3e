// Where a Docker Engine is, and where the ports it publishes are reached.
import { hostname } from 'node:os';
import { invalid } from '../../lib/setting-parsers.ts';

export const defaultDockerSocket = '/var/run/docker.sock';

/** As node:http takes it. */
export type Connection = { socketPath: string } | { host: string; port: number };

export function connectionOf(address: string): Connection {
  const remote = remoteOf(address);
  return remote ? { host: remote.host, port: remote.port } : { socketPath: address.replace(/^unix:\/\//, '') };
}

/** The folder with the certificates for TLS: `tcp://host:2376?certs=/path`. Null: it is reached without. */
export const certificatesOf = (address: string): string | null => remoteOf(address)?.certs ?? null;

/** The address itself; complains where it cannot be one. */
export function checkAddress(address: string): string {
  const [, scheme] = /^([a-z]+):\/\//.exec(address) ?? [];
  if (scheme === undefined || scheme === 'unix') return address;
  const isRemote = scheme === 'tcp' || scheme === 'http';
  const query = isRemote && URL.canParse(httpOf(address)) ? [...new URL(httpOf(address)).searchParams] : null;
  const isKnown = query?.every(([name, value]) => name === 'certs' && value.startsWith('/'));
  return isKnown ? address : invalid(`"${address}" must be a socket, tcp://host:port or tcp://host:port?certs=/folder`);
}

const httpOf = (address: string): string => address.replace(/^tcp:/, 'http:');

function remoteOf(address: string): { host: string; port: number; certs: string | null } | null {
  if (!/^(tcp|http):\/\//.test(address)) return null;
  const { hostname, port, searchParams } = new URL(httpOf(address));
  const certs = searchParams.get('certs');
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || (certs === null ? 2375 : 2376)), certs };
}

export interface Reach {
  /** The address on which the engine publishes ports. */
  bind: string;
  /** The host at which this process reaches them. */
  host: string;
  /** The name of the machine that it is on. */
  node: string;
}

/**
 * An engine on this machine publishes ports on loopback only. A remote engine publishes them on the address it is reached
 * at; if that is a host name, on all its addresses, because the name may resolve differently over there.
 */
export function reachOf(address: string): Reach {
  const remote = remoteOf(address);
  if (!remote || remote.host === 'localhost') return { bind: '127.0.0.1', host: '127.0.0.1', node: hostname() };
  const isLiteral = /^[\d.]+$/.test(remote.host) || remote.host.includes(':');
  return { bind: isLiteral ? remote.host : '0.0.0.0', host: remote.host, node: remote.host };
}
