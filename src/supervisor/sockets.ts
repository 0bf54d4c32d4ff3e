// The listening sockets, opened here or received from systemd. They are bound and never accepted from: that is what the
// children do, which inherit them. As long as the supervisor holds one, the kernel keeps connections waiting while a child
// is replaced. A port in use is an error of the settings, unless our own orphans serve on it: the sockets of visitors are then
// taken over from them, and any other port is shared with them until they end.
import { lookup } from 'node:dns/promises';
import net from 'node:net';
import { getSystemErrorMap } from 'node:util';
import type { Config } from '../config.ts';
import type { ListenerHandle } from '../lib/pass-listeners.ts';
import { StartError } from '../lib/start-error.ts';

const socketNames = ['api', 'router', 'routerTls'] as const;
type SocketName = (typeof socketNames)[number];

/** What Node.js' own cluster module opens shared sockets with: `net.BoundSocket` is not in every version we run on. */
const { _createServerHandle: createHandle } = net as unknown as {
  _createServerHandle(
    address: string | null,
    port: number | null,
    family: number | null,
    fd: number,
    flags: number,
  ): ListenerHandle | number;
};

export interface Socket {
  handle: ListenerHandle;
  fd: number;
  address: string;
  port: number;
}

export interface Sockets {
  /** null: what it is for does not run here. */
  of: Record<SocketName, Socket | null>;
  /** systemd holds all of them too, and goes on doing so. */
  outlive: boolean;
  close(): void;
}

type Env = Record<string, string | undefined>;

/** Processes of a killed supervisor. They are asked only if a port is in use. */
interface Orphans {
  showUp(): Promise<boolean>;
  listenerAt(address: string, port: number): Promise<ListenerHandle | null>;
}

export async function openSockets(config: Config, env: Env, pid: number, orphans: Orphans): Promise<Sockets> {
  const ports = { api: config.port, router: config.routerPort, routerTls: config.routerTlsPort };
  const received = receivedSockets(env, pid, ports);
  const of: Sockets['of'] = { api: null, router: null, routerTls: null };
  for (const name of socketNames) {
    // HAProxy opens its own, which outlive this process.
    if (name !== 'api' && (!config.roles.includes('router') || config.haproxy !== null)) continue;
    of[name] = received.get(name) ?? (await open(name, config.host, ports[name], orphans));
  }
  const all = Object.values(of).filter((socket) => socket !== null);
  return {
    of,
    outlive: received.size > 0 && all.every((socket) => [...received.values()].includes(socket)),
    close: () => all.forEach(({ handle }) => void handle.close()),
  };
}

/** For ports that HAProxy opens itself: it would share one with anything else that allows it, and serve half of the visits. */
export async function refuseTakenPorts(config: Config, orphans: Orphans): Promise<void> {
  const ports = { router: config.routerPort, routerTls: config.routerTlsPort };
  for (const name of ['router', 'routerTls'] as const) {
    await refuseOtherPrograms(name, config.host, ports[name], orphans);
  }
}

const settingOf: Record<SocketName, string> = {
  api: 'SLUICE_PORT',
  router: 'SLUICE_ROUTER_PORT',
  routerTls: 'SLUICE_ROUTER_TLS_PORT',
};

async function open(name: SocketName, host: string, port: number, orphans: Orphans): Promise<Socket> {
  const isShared = await refuseOtherPrograms(name, host, port, orphans);
  // What only shares their port would get a part of the visitors, and the rest would end with the orphans.
  const taken = isShared && name !== 'api' ? await orphans.listenerAt((await resolve(host)).address, port) : null;
  if (taken) return describe(taken, `${host}:${port}`);
  return bind(host, port, shared).catch((error) => {
    throw portError(name, host, port, error);
  });
}

/** Whether orphans use the port. Rejects if others do. */
async function refuseOtherPrograms(name: SocketName, host: string, port: number, orphans: Orphans): Promise<boolean> {
  try {
    // Two sockets may share a port if both say so, and this one says no: it finds out whether there is another one.
    if (port !== 0) (await bind(host, port, exclusive)).handle.close();
    return false;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE' && (await orphans.showUp())) return true;
    throw portError(name, host, port, error as Error);
  }
}

function portError(name: SocketName, host: string, port: number, error: Error): Error {
  const setting = settingOf[name];
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EADDRINUSE':
      return new StartError(
        `${setting}: port ${port} is in use by another program. Stop that, or choose another port.`,
      );
    case 'EACCES':
      return new StartError(`${setting}: port ${port} is not allowed to this user. Choose one above 1023.`);
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new StartError(`SLUICE_HOST: ${host} is no address of this machine.`);
    default:
      return error;
  }
}

/** What libuv calls UV_TCP_REUSEPORT. */
const shared = 2;
const exclusive = 0;

const resolve = async (host: string): Promise<{ address: string; family: number }> =>
  net.isIP(host) ? { address: host, family: net.isIP(host) } : lookup(host);

async function bind(host: string, port: number, flags: number): Promise<Socket> {
  const { address, family } = await resolve(host);
  const handle = createHandle(address, port, family, -1, flags);
  if (typeof handle === 'number') throw systemError(handle, `${host}:${port}`);
  return describe(handle, `${host}:${port}`);
}

/** An address in use is not reported by the attempt to bind it, but when the socket is asked where it is. */
function describe(handle: ListenerHandle, where: string): Socket {
  const name: { address?: string; port?: number } = {};
  const failed = handle.getsockname(name);
  if (failed !== 0) {
    handle.close();
    throw systemError(failed, where);
  }
  return { handle, fd: handle.fd, address: name.address!, port: name.port! };
}

function systemError(number: number, where: string): Error {
  const [code, text] = getSystemErrorMap().get(number) ?? ['EUNKNOWN', 'unknown error'];
  return Object.assign(new Error(`listen ${code}: ${text} ${where}`), { code });
}

const firstReceived = 3;
const namesForSystemd: Record<string, SocketName> = { api: 'api', router: 'router', 'router-tls': 'routerTls' };

/** By name (FileDescriptorName=) or else by port. See sd_listen_fds(3). */
function receivedSockets(env: Env, pid: number, ports: Record<SocketName, number>): Map<SocketName, Socket> {
  const received = new Map<SocketName, Socket>();
  if (Number(env.LISTEN_PID) !== pid) return received;
  const names = (env.LISTEN_FDNAMES ?? '').split(':');
  for (let index = 0; index < Number(env.LISTEN_FDS ?? 0); index++) {
    const handle = createHandle(null, null, null, firstReceived + index, 0);
    if (typeof handle === 'number')
      throw new StartError(`LISTEN_FDS: descriptor ${firstReceived + index} is no socket`);
    const socket = describe(handle, 'LISTEN_FDS');
    const name =
      namesForSystemd[names[index] ?? ''] ?? socketNames.find((candidate) => ports[candidate] === socket.port);
    const where = `LISTEN_FDS: the socket at ${socket.address} port ${socket.port}`;
    if (name === undefined)
      throw new StartError(`${where} is none of SLUICE_PORT, SLUICE_ROUTER_PORT, SLUICE_ROUTER_TLS_PORT`);
    if (received.has(name)) throw new StartError(`${where} is the second one for the same purpose`);
    received.set(name, socket);
  }
  return received;
}
