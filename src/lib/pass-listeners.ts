// Passes listening sockets to a process that neither started this one nor was started by it, over a unix socket (SCM_RIGHTS).
// Both then have the same socket: connections that wait for one of them are accepted by the other if the first ends. Node.js
// does this between a process and its children only, so what it does that with is used here directly.
import { type Server, Socket } from 'node:net';

/** A listening socket, as Node.js holds it. */
export interface ListenerHandle {
  fd: number;
  getsockname(into: { address?: string; port?: number }): number;
  close(): void;
}

interface Pipe {
  fd: number;
  open(fd: number): number;
  writeUtf8String(request: object, text: string, handle: object): number;
  /** What came with the bytes that were just read. */
  pendingHandle?: ListenerHandle | null;
}

interface Internals {
  binding(name: 'pipe_wrap'): { Pipe: new (type: number) => Pipe; constants: { IPC: number } };
  binding(name: 'stream_wrap'): { WriteWrap: new () => { oncomplete: () => void } };
}

const { binding } = process as unknown as Internals;

const createPipe = (): Pipe => {
  const { Pipe, constants } = binding('pipe_wrap');
  return new Pipe(constants.IPC);
};

const socketOf = (pipe: Pipe): Socket => new Socket({ handle: pipe, manualStart: true } as object);

export interface ListenerSender {
  socket: Socket;
  /** After it has connected. A line goes with it. */
  pass(listener: ListenerHandle): void;
}

export function connectToPass(path: string, onConnected: () => void): ListenerSender {
  const pipe = createPipe();
  const socket = socketOf(pipe).connect(path, onConnected);
  const pass = (listener: ListenerHandle) => {
    const request = new (binding('stream_wrap').WriteWrap)();
    request.oncomplete = () => {};
    pipe.writeUtf8String(request, passedLine, listener);
  };
  return { socket, pass };
}

export const passedLine = 'listener\n';

/**
 * The connection to go on with. `accepted` comes from a server with `pauseOnConnect`, and is not to be touched again: there is no
 * other way to accept a connection that can bring sockets. Both have the same descriptor, and only the one that is returned closes it.
 */
export function receiveListeners(accepted: Socket, onListener: (listener: ListenerHandle) => void): Socket {
  const pipe = createPipe();
  pipe.open((accepted as unknown as { _handle: Pipe })._handle.fd);
  const socket = socketOf(pipe);
  socket.on('data', () => {
    if (pipe.pendingHandle) onListener(pipe.pendingHandle);
    pipe.pendingHandle = null;
  });
  return socket;
}

/** null: it does not listen. */
export const listenerOf = (server: Server): ListenerHandle | null =>
  (server as unknown as { _handle: ListenerHandle | null })._handle;
