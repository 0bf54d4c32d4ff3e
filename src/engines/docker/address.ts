// Where a Docker Engine is, and where the ports it publishes are reached.
import { hostname } from 'node:os';

export const defaultDockerSocket = '/var/run/docker.sock';

type Connection =
  | { socketPath: string; host: undefined }
  | { host: string; port: number; protocol: 'http'; socketPath: undefined };

/** Sets the unused half to undefined explicitly, because dockerode would otherwise take it from DOCKER_HOST. */
export function connectionOf(address: string): Connection {
  const remote = remoteOf(address);
  if (remote) return { ...remote, protocol: 'http', socketPath: undefined };
  return { socketPath: address.replace(/^unix:\/\//, ''), host: undefined };
}

function remoteOf(address: string): { host: string; port: number } | null {
  if (!/^(tcp|http):\/\//.test(address)) return null;
  const { hostname, port } = new URL(address.replace(/^tcp:/, 'http:'));
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 2375) };
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
