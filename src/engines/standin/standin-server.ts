// The stand-in's instances in a process of their own, as containers have theirs: they outlive the control process, which
// finds them again through a unix socket in the data directory. The process ends together with a service that stops in
// order, by itself when it has no instance and is asked nothing for a while, and at once when its data directory is gone.
import { once } from 'node:events';
import { chmodSync, existsSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { LogPosition } from '../../lib/log-position.ts';
import { createServer } from '../../lib/node-http.ts';
import { socketPathIn } from '../../lib/private-files.ts';
import { takeProcessLock } from '../../lib/process-lock.ts';
import { EngineError } from '../engine.ts';
import { createStandinEngine, type StandinAnswer, type StandinCall, type StandinEngine } from './standin.ts';

const checkEveryMs = 500;
const unusedForMs = 30_000;

/** Returns at once where another process of this directory runs already. */
export async function serveStandin(dir: string, end: () => void): Promise<void> {
  const lock = takeProcessLock(join(dir, 'standin.lock'));
  if (!lock) return end();
  const path = socketPathIn(dir, 'standin.sock');
  rmSync(path, { force: true }); // left behind by one that was killed
  const installations = new Map<string, StandinEngine>();
  let askedAt = performance.now();
  const server = createServer(async (request, response) => {
    if (request.method === 'DELETE') return close();
    askedAt = performance.now();
    const answered = await answer(installations, request);
    if (isStream(answered)) await send(answered, response);
    else response.end(JSON.stringify(answered));
  });
  server.listen(path);
  await once(server, 'listening');
  chmodSync(path, 0o600);
  const close = () => {
    rmSync(path, { force: true });
    lock.release();
    end();
  };
  setInterval(async () => {
    if (!existsSync(path)) return close();
    if (performance.now() - askedAt < unusedForMs) return;
    const instances = await Promise.all([...installations.values()].map((engine) => engine.list()));
    if (instances.flat().length === 0) close();
  }, checkEveryMs);
}

type FollowArgs = [id: string, after: LogPosition | null];

function goneSignal(request: IncomingMessage): AbortSignal {
  const gone = new AbortController();
  request.socket.once('close', () => gone.abort());
  return gone.signal;
}

type Lines = AsyncIterable<Buffer>;

const isStream = (answered: StandinAnswer | Lines): answered is Lines => Symbol.asyncIterator in answered;

/** Until the instance has ended or nobody listens any more. */
async function send(lines: Lines, response: ServerResponse): Promise<void> {
  response.flushHeaders();
  await pipeline(lines, response).catch(() => {}); // it went away
}

async function answer(
  installations: Map<string, StandinEngine>,
  request: IncomingMessage,
): Promise<StandinAnswer | Lines> {
  try {
    const { installation, method, args } = (await json(request)) as StandinCall;
    let engine = installations.get(installation);
    if (!engine) {
      engine = createStandinEngine();
      installations.set(installation, engine);
    }
    if (method === 'follow') return engine.follow!(...(args as FollowArgs), goneSignal(request));
    const call = engine[method] as (...args: unknown[]) => Promise<unknown>;
    return { result: await call(...args) };
  } catch (error) {
    const fault = error instanceof EngineError ? error.fault : 'unavailable';
    return { fault, message: (error as Error).message };
  }
}
