// Where the supervisor of a data directory is reached. `sluice reload` asks for a reload here and gets its outcome, and the
// orphans of a killed supervisor wait here for their successors (lib/supervised.ts). By it a supervisor also
// knows that there is another one: a data directory is for one service, on PostgreSQL too, because what its router workers,
// its HAProxy and its command line meet at lies in it.
import { chmodSync, linkSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { dataDirInUse } from '../data-dir.ts';
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
  #onFirst: (() => void) | null = null;

  add(socket: Socket): void {
    this.#waiting.add(socket);
    socket.once('close', () => this.#waiting.delete(socket));
    this.#onFirst?.();
  }

  /** Whether there are any. They show up by themselves, a moment after the socket is opened. */
  async showUp(): Promise<boolean> {
    if (this.#waiting.size > 0) return true;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onFirst = resolve;
    const timer = setTimeout(resolve, showUpWithinMs);
    await promise;
    clearTimeout(timer);
    return this.#waiting.size > 0;
  }

  /** Others serve in their place from now on. Gives how many there are. */
  release(): number {
    for (const socket of this.#waiting) socket.end(releaseLine);
    return this.#waiting.size;
  }
}

/** Rejects with StartError if another supervisor answers there already. */
export async function openSupervisorSocket(dir: string): Promise<SupervisorSocket> {
  const path = supervisorSocketPath(dir);
  const orphans = new OrphanedProcesses();
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', async (line) => {
      if (String(line) === orphanLine) orphans.add(socket);
      else socket.end(`${JSON.stringify(await opened.reload())}\n`);
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
