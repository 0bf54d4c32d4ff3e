// The stand-in's instances in a process of their own, as containers have theirs: they outlive the control process, which
// finds them again through a unix socket in the data directory. The process ends by itself when it has no instance and
// is asked nothing for a while, and at once when its data directory is gone.
import { once } from 'node:events';
import { chmodSync, existsSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { createServer } from '../../lib/http/node-http.ts';
import { takeProcessLock } from '../../lib/process-lock.ts';
import { socketPathIn } from '../../lib/socket-path.ts';
import { type Engine, EngineError } from '../engine.ts';
import type { StandinAnswer, StandinCall } from './protocol.ts';
import { createStandinEngine } from './standin.ts';

const lookEveryMs = 500;
const unusedForMs = 30_000;

/** Returns at once where another process of this directory runs already. */
export async function serveStandin(dir: string, end: () => void): Promise<void> {
  const lock = takeProcessLock(join(dir, 'standin.lock'));
  if (!lock) return end();
  const path = socketPathIn(dir, 'standin.sock');
  rmSync(path, { force: true }); // left behind by one that was killed
  const installations = new Map<string, Engine>();
  let askedAt = performance.now();
  const server = createServer(async (request, response) => {
    askedAt = performance.now();
    response.end(JSON.stringify(await answer(installations, request)));
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
  }, lookEveryMs);
}

async function answer(installations: Map<string, Engine>, request: IncomingMessage): Promise<StandinAnswer> {
  try {
    const { installation, method, args } = (await json(request)) as StandinCall;
    let engine = installations.get(installation);
    if (!engine) {
      engine = createStandinEngine();
      installations.set(installation, engine);
    }
    const call = engine[method] as (...args: unknown[]) => Promise<unknown>;
    return { result: await call(...args) };
  } catch (error) {
    const fault = error instanceof EngineError ? error.fault : 'unavailable';
    return { fault, message: (error as Error).message };
  }
}
