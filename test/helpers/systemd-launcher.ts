// Starts the service as systemd does with a socket unit: with sockets that the launcher opened and goes on holding.
import { type ChildProcess, spawn } from 'node:child_process';
import net from 'node:net';
import { main, type Service, serviceOf } from './service.ts';

interface Handle {
  fd: number;
  getsockname(into: { port?: number }): number;
  close(): void;
}

const { _createServerHandle: bind } = net as unknown as {
  _createServerHandle(address: string, port: number, family: number, fd: number, flags: number): Handle;
};

export interface HeldSockets {
  /** Names as in FileDescriptorName=, to their ports. */
  ports: Record<string, number>;
  start(env: Record<string, string>): Service;
  close(): void;
}

export function holdSockets(names: string[]): HeldSockets {
  const handles = names.map(() => bind('127.0.0.1', 0, 4, -1, 0));
  const portOf = (handle: Handle) => {
    const name: { port?: number } = {};
    handle.getsockname(name);
    return name.port!;
  };
  return {
    ports: Object.fromEntries(names.map((name, index) => [name, portOf(handles[index]!)])),
    start(env) {
      // LISTEN_PID has to be that of the service itself, which the shell becomes.
      const child: ChildProcess = spawn('/bin/sh', ['-c', 'LISTEN_PID=$$ exec "$0" "$@"', process.execPath, main], {
        env: { PATH: process.env.PATH, ...env, LISTEN_FDS: String(names.length), LISTEN_FDNAMES: names.join(':') },
        stdio: ['ignore', 'pipe', 'pipe', ...handles.map(({ fd }) => fd)],
        detached: true,
      });
      return serviceOf(child);
    },
    close: () => handles.forEach((handle) => void handle.close()),
  };
}
