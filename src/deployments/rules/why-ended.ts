// What the end of an instance says about it. No I/O.
import type { EngineInstance } from '../../engines/engine.ts';
import type { HowItEnded } from '../instance-ends.ts';
import type { Failure } from './steps.ts';

/** The engine does not know it any more. */
export const vanished = (at: number): HowItEnded => ({
  ...{ at, reason: 'not_found', exitCode: null },
  message: 'An instance is gone from its engine: something else removed it.',
});

export const endedWithEngine = (at: number): HowItEnded => ({
  ...{ at, reason: 'evicted', exitCode: null },
  message: 'An instance ended together with its engine, which was restarted.',
});

/** Stopped by the service, or never started, for this reason. */
export const givenUp = (at: number, { message }: Failure, reason: 'killed' | 'exited'): HowItEnded => ({
  ...{ at, reason, exitCode: null },
  message,
});

/** Of one that the engine says has ended by itself. */
export function howItEnded(found: EngineInstance, nowMs: number): HowItEnded {
  const { exitCode, ended } = found;
  const reason = ended?.reason ?? 'exited';
  // The clock of the engine may be ahead of ours.
  const at = Math.min(ended?.at ?? nowMs, nowMs);
  return { at, reason, exitCode, message: messageOf(reason, exitCode, ended?.memoryLimitMb ?? null) };
}

export const failureOf = ({ reason, message }: HowItEnded): Failure => ({
  code: reason === 'out_of_memory' ? 'out_of_memory' : 'crashed',
  message,
});

function messageOf(reason: HowItEnded['reason'], exitCode: number | null, limitMb: number | null): string {
  if (reason === 'out_of_memory') return outOfMemory(limitMb);
  const code = exitCode === null ? 'an unknown exit code' : `exit code ${exitCode}`;
  if (reason === 'killed') return `An instance was killed from outside (${code}): not by this service.`;
  if (exitCode === 0) return `An instance ended with ${code}: the program has to go on running to serve requests.`;
  return `An instance ended with ${code}. What it printed last says why.`;
}

/** The kernel ends a program when it needs more than the limit, so its peak is the limit. */
function outOfMemory(limitMb: number | null): string {
  const limit = limitMb === null ? 'its memory limit' : `its limit of ${limitMb} MB (peak ${limitMb} MB)`;
  return (
    `An instance ran out of memory: it reached ${limit}. Give the environment more memory (resources.memory_mb), ` +
    'or make the program use less.'
  );
}
