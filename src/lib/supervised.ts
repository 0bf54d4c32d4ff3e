// What a process does because a supervisor started it: it says every second that it is well, over the channel between the
// two, and if the supervisor is killed it serves on until the next one has others in its place. These listen on the same
// sockets: it passes its own to the next supervisor, so that a connection which waits to be accepted does not end with it.
import { connectToPass, type ListenerHandle } from './pass-listeners.ts';

export interface Heartbeat {
  well?: true;
  /** It does not get on with its work, though it can say so. */
  trouble?: string;
}

const beatEveryMs = 1000;

/** `findTrouble` gives what is wrong; null: nothing is. */
export function startHeartbeat(findTrouble: () => string | null): void {
  let isSending = false;
  setInterval(() => {
    // A supervisor that does not read must not have messages pile up here.
    if (!process.connected || isSending) return;
    const trouble = findTrouble();
    const beat: Heartbeat = trouble === null ? { well: true } : { trouble };
    isSending = true;
    process.send!(beat, undefined, {}, () => {
      isSending = false;
    });
  }, beatEveryMs).unref();
}

export const orphanLine = 'orphan\n';
export const releaseLine = 'release\n';

/** To try a socket costs next to nothing, and the next supervisor waits for it. */
const retryMs = 200;

/**
 * For an orphan: resolves when the next supervisor of the data directory has others that serve. `listeners` gives what it
 * listens on, if the next supervisor is to have it.
 */
export function waitForSuccessors(supervisorSocket: string, listeners: () => ListenerHandle[]): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const attempt = () => {
    let received = '';
    const { socket, pass } = connectToPass(supervisorSocket, () => {
      for (const listener of listeners()) pass(listener);
      socket.write(orphanLine);
    });
    socket.setEncoding('utf8').on('data', (text) => {
      received += text;
    });
    socket.on('error', () => {}); // a close follows
    socket.once('close', () => {
      if (received === releaseLine) resolve();
      else setTimeout(attempt, retryMs);
    });
  };
  attempt();
  return promise;
}
