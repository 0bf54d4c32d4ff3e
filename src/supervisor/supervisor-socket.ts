// Where the supervisor of a data directory is reached. `sluice reload` asks for a reload here and gets its outcome, and the
// orphans of a killed supervisor wait here for their successors, and pass the sockets that they listen on
// (lib/supervised.ts). By it a supervisor also
// knows that there is another one: a data directory is for one service, on PostgreSQL too, because what its router workers,
// its HAProxy and its command line meet at lies in it.
import { chmodSync, linkSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { dataDirInUse } from '../data-dir.ts';
import { type ListenerHandle, passedLine, receiveListeners } from '../lib/pass-listeners.ts';
import { socketPathIn } from '../lib/private-files.ts';
import { orphanLine, releaseLine } from '../lib/supervised.ts';

export const supervisorSocketPath = (dir: string): string => socketPathIn(dir, 'supervisor.sock');

export interface ReloadOutcome {
  ok: boolean;
  message: string;
}

export interface SupervisorSocket {
  /** Carries out what is asked for. */
  reload: () => Promise<ReloadOutcome>;
  orphans: OrphanedProcesses;
  close(): void;
}

/** Longer than an orphan waits between two attempts to find the next supervisor. */
const showUpWithinMs = 1000;

/** Children of a supervisor of this data directory that was killed. They serve until they are told that others do. */
export class OrphanedProcesses {
  readonly #waiting = new Set<Socket>();
  /** What they listen on, by address and port; each of the workers passes the same. */
  readonly #listeners = new Map<string, ListenerHandle>();
  #onMore: (() => void) | null = null;

  add(socket: Socket): void {
    this.#waiting.add(socket);
    socket.once('close', () => this.#waiting.delete(socket));
    this.#onMore?.();
  }

  addListener(listener: ListenerHandle): void {
    const at: { address?: string; port?: number } = {};
    listener.getsockname(at);
    const key = `${at.address} ${at.port}`;
    if (this.#listeners.has(key)) listener.close();
    else this.#listeners.set(key, listener);
    this.#onMore?.();
  }

  /** Whether there are any. They show up by themselves, a moment after the socket is opened. */
  async showUp(): Promise<boolean> {
    return (await this.#waitFor(() => this.#waiting.size > 0 || undefined)) ?? false;
  }

  /** The socket itself that they listen on there, which is the caller's from now on; null: they pass none. */
  async listenerAt(address: string, port: number): Promise<ListenerHandle | null> {
    const key = `${address} ${port}`;
    const listener = await this.#waitFor(() => this.#listeners.get(key));
    this.#listeners.delete(key);
    return listener;
  }

  async #waitFor<T>(find: () => T | undefined): Promise<T | null> {
    const { promise, resolve } = Promise.withResolvers<T | null>();
    const timer = setTimeout(() => resolve(null), showUpWithinMs);
    this.#onMore = () => {
      const found = find();
      if (found !== undefined) resolve(found);
    };
    this.#onMore();
    const found = await promise;
    clearTimeout(timer);
    return found;
  }

  /** Others serve in their place from now on. Gives how many there are. */
  release(): number {
    for (const listener of this.#listeners.values()) listener.close();
    for (const socket of this.#waiting) socket.end(releaseLine);
    return this.#waiting.size;
  }
}

/** Rejects with StartError if another supervisor answers there already. */
export async function openSupervisorSocket(dir: string): Promise<SupervisorSocket> {
  const path = supervisorSocketPath(dir);
  const orphans = new OrphanedProcesses();
  const server = createServer({ pauseOnConnect: true }, (accepted) => {
    const socket = receiveListeners(accepted, (listener) => orphans.addListener(listener));
    socket.on('error', () => {});
    socket.setEncoding('utf8').on('data', async (text: string) => {
      const line = text.replaceAll(passedLine, '');
      if (line === orphanLine) orphans.add(socket);
      else if (line !== '') socket.end(`${JSON.stringify(await opened.reload())}\n`);
    });
  });
  const opened: SupervisorSocket = {
    reload: async () => ({ ok: false, message: 'The service is still starting.' }),
    orphans,
    close() {
      rmSync(path, { force: true });
      server.close();
    },
  };
  const temporary = `${path}.${process.pid}`;
  rmSync(temporary, { force: true });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(temporary, resolve));
  try {
    chmodSync(temporary, 0o600);
    await claim(path, temporary, dir);
  } catch (error) {
    server.close();
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
  return opened;
}

/** A link is made only where there is none, so of two that start at the same time one is refused. */
async function claim(path: string, temporary: string, dir: string): Promise<void> {
  for (;;) {
    try {
      return linkSync(temporary, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    if (await isAnswered(path)) throw dataDirInUse(dir);
    rmSync(path, { force: true }); // left behind by one that was killed
  }
}

const isAnswered = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });

/** null: no supervisor answers there. */
export function askToReload(dir: string): Promise<ReloadOutcome | null> {
  const { promise, resolve } = Promise.withResolvers<ReloadOutcome | null>();
  let answer = '';
  let connected = false;
  const socket = connect(supervisorSocketPath(dir), () => {
    connected = true;
    socket.write('reload\n');
  });
  socket.setEncoding('utf8').on('data', (chunk) => {
    answer += chunk;
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    if (!connected) resolve(null);
    else if (answer.endsWith('\n')) resolve(JSON.parse(answer));
    else resolve({ ok: false, message: 'The service ended before it had reloaded.' });
  });
  return promise;
}
