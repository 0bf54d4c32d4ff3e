// Many seeds in parts, each in a process of its own, as many at a time as there are processors. What crashed machines left
// waiting stays in the memory of a process, which gets slower by it.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Part } from './part.ts';
import type { Result } from './run.ts';

const seedsPerPart = 25;

export async function runInParts({ from, to, ...options }: Part, onResult: (result: Result) => void): Promise<void> {
  let next = from;
  const runNext = async (): Promise<void> => {
    if (next > to) return;
    const part: Part = { ...options, from: next, to: Math.min(to, next + seedsPerPart - 1) };
    next = part.to + 1;
    await runPart(part, onResult);
    return runNext();
  };
  await Promise.all(Array.from({ length: availableParallelism() }, runNext));
}

async function runPart(part: Part, onResult: (result: Result) => void): Promise<void> {
  const child = fork(join(import.meta.dirname, 'part.ts'), [JSON.stringify(part)]);
  child.on('message', (result) => onResult(result as Result));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the simulation of seeds ${part.from} to ${part.to} ended with ${code}`);
}
