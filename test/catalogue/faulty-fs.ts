// The file system as a process finds it that is killed, or whose disk fills, at one of its steps. Every call of
// node:fs/promises that changes something is a step; `syncBuiltinESMExports` shows the patched ones to modules that have
// imported them already.
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

type Call = (...args: unknown[]) => Promise<unknown>;

const changing = ['rename', 'rm', 'link', 'mkdir', 'writeFile', 'open'] as const;
const onHandles = ['writeFile', 'write', 'sync', 'truncate'] as const;

export class StepFailed extends Error {
  code: string;
  constructor(code: string) {
    super(`${code}: no further step`);
    this.code = code;
  }
}

/** `ends`: every step from there on fails, those of the cleanup too, as after a kill; else only writes do, as on a full disk. */
interface Fault {
  atStep: number;
  kind: 'killed' | 'disk full';
}

/** Runs a task while its steps are counted, and fail from one on; gives how many there were, and what the task threw. */
export async function withFault(
  fault: Fault,
  task: () => Promise<unknown>,
): Promise<{ steps: number; error: unknown }> {
  let steps = 0;
  const needsSpace = new Set<string>(['mkdir', 'writeFile', 'write', 'link', 'sync']);
  const step = (name: string) => {
    steps++;
    if (steps < fault.atStep) return;
    if (fault.kind === 'killed') throw new StepFailed('EKILLED');
    if (needsSpace.has(name)) throw new StepFailed('ENOSPC');
  };
  const patch = (target: Record<string, Call>, name: string) => {
    const real = target[name]!;
    target[name] = async (...args) => {
      if (name !== 'open' || (args[1] ?? 'r') !== 'r') step(name);
      const result = await real.apply(target, args);
      if (name === 'open') for (const each of onHandles) patch(result as Record<string, Call>, each);
      return result;
    };
    return () => {
      target[name] = real;
    };
  };
  const module = promises as unknown as Record<string, Call>;
  const undos = changing.map((name) => patch(module, name));
  syncBuiltinESMExports();
  try {
    await task();
    return { steps, error: null };
  } catch (error) {
    return { steps, error };
  } finally {
    for (const undo of undos) undo();
    syncBuiltinESMExports();
  }
}
