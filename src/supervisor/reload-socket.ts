// Where `sluice reload` asks the supervisor of a data directory to reload, and is told how it went.
import { chmodSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { socketPathIn } from '../lib/socket-path.ts';

const pathIn = (dir: string): string => socketPathIn(dir, 'supervisor.sock');

export interface ReloadOutcome {
  ok: boolean;
  message: string;
}

/** Rejects if another supervisor answers there already. */
export async function serveReload(dir: string, reload: () => Promise<ReloadOutcome>): Promise<Server> {
  const path = pathIn(dir);
  if (await isAnswered(path)) throw new Error('another supervisor answers in this data directory');
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', async () => socket.end(`${JSON.stringify(await reload())}\n`));
  });
  rmSync(path, { force: true }); // left behind by one that was killed
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve));
  chmodSync(path, 0o600);
  return server;
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
