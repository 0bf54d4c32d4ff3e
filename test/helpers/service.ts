// The service as a process of its own.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

/** None outlives the test that started it, however that ends. */
const children = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

export interface Service {
  child: ChildProcess;
  output(): string;
  /** Resolves with the address once it listens. */
  url: Promise<string>;
  exited: Promise<[code: number | null, signal: string | null]>;
}

export function startService(env: Record<string, string>): Service {
  const child = spawn(process.execPath, [main], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.add(child);
  child.on('close', () => children.delete(child));
  let output = '';
  const url = new Promise<string>((resolve) => {
    const read = (chunk: Buffer) => {
      output += chunk;
      const found = /listens on (http:\S+)/.exec(output);
      if (found) resolve(found[1]!);
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
  });
  return { child, output: () => output, url, exited: once(child, 'close') as Service['exited'] };
}
