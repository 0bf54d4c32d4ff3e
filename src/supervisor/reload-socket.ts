// Where `sluice reload` asks the supervisor of a data directory to reload, and is told how it went. By it a supervisor also
// knows that there is another one: a data directory is for one service, on PostgreSQL too, because what its router workers,
// its HAProxy and its command line meet at lies in it.
import { chmodSync, linkSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dataDirInUse } from '../data-dir.ts';
import { socketPathIn } from '../lib/private-files.ts';

const pathIn = (dir: string): string => socketPathIn(dir, 'supervisor.sock');

export interface ReloadOutcome {
  ok: boolean;
  message: string;
}

export interface ReloadSocket {
  /** Carries out what is asked for. */
  reload: () => Promise<ReloadOutcome>;
  close(): void;
}

/** Rejects with StartError if another supervisor answers there already. */
export async function openReloadSocket(dir: string): Promise<ReloadSocket> {
  const path = pathIn(dir);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', async () => socket.end(`${JSON.stringify(await opened.reload())}\n`));
  });
  const opened: ReloadSocket = {
    reload: async () => ({ ok: false, message: 'The service is still starting.' }),
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
  const socket = connect(pathIn(dir), () => {
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
