// The service as a process of its own.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const main = fileURLToPath(new URL('../../bin/start.js', import.meta.url));

/** None outlives the test that started it, however that ends. */
const services = new Set<Service>();
process.on('exit', () => {
  for (const service of services) service.killAll();
});

export interface Service {
  /** The supervisor. */
  child: ChildProcess;
  /** `kill -9` of every process of the service at once; instances outlive it. */
  killAll(): void;
  output(): string;
  /** Resolves with the address once it listens. */
  url: Promise<string>;
  exited: Promise<[code: number | null, signal: string | null]>;
}

/** With one router worker, unless `env` says otherwise. `program`: a Node.js to run it with. */
export function startService(env: Record<string, string>, entry = main, program = process.execPath): Service {
  const child = spawn(program, [entry], {
    env: { PATH: process.env.PATH, SLUICE_ROUTER_WORKERS: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // its processes are a group, and can be killed as one
  });
  return serviceOf(child);
}

/** Two on one PostgreSQL, each with a data directory of its own. */
export function startTwoServices(env: Record<string, string>): [Service, Service] {
  const shared = { ...env, SLUICE_SECRET_KEY: randomBytes(32).toString('base64') };
  const startIn = (name: string) => startService({ ...shared, SLUICE_DATA_DIR: join(env.SLUICE_DATA_DIR!, name) });
  return [startIn('one'), startIn('two')];
}

/** `child` leads a process group. */
export function serviceOf(child: ChildProcess): Service {
  let output = '';
  const url = new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer) => {
      output += chunk;
      const found = /listens on (http:\S+)/.exec(output);
      if (found) resolve(found[1]!);
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
    child.on('close', () => reject(new Error(`the service ended before it listened:\n${output}`)));
  });
  url.catch(() => {}); // not every test waits for it
  const service: Service = {
    child,
    killAll: () => void (child.pid !== undefined && killGroup(child.pid)),
    output: () => output,
    url,
    exited: once(child, 'close') as Service['exited'],
  };
  services.add(service);
  child.on('close', () => services.delete(service));
  return service;
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // None of them is left.
  }
}
