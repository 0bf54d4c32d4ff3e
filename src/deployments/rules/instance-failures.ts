// What is wrong with an instance, in words for people and with a remedy: why one that runs is not healthy, and why one
// has ended. No I/O.
import type { Engine, EngineInstance } from '../../engines/engine.ts';
import type { HowItEnded } from '../instance-queries.ts';
import type { Failure } from './rollout.ts';

/** What its latest health check said; null: there was none yet. */
type Check = { ok: true } | { ok: false; fault: 'no_connection' | 'no_answer' | 'bad_answer'; message: string } | null;

export type Listening = Awaited<ReturnType<NonNullable<Engine['listening']>>>;

/** `port`: the one it should listen on; `listening`: what it does listen on, null: not known. */
export function notHealthy(check: Check, port: number | null, listening: Listening): Failure {
  if (!check || check.ok) {
    // Something accepts connections for it: Docker's proxy does.
    if (check && port !== null && listening && !listening.open.includes(port))
      return { code: 'port_not_listening', message: notListening(port, listening, '') };
    return { code: 'start_timeout', message: noCheckFailed };
  }
  if (check.fault === 'bad_answer') return { code: 'health_check_failed', message: check.message };
  const isOpen = listening?.open.includes(port ?? 0) ?? false;
  if (port !== null && !isOpen && (listening !== null || check.fault === 'no_connection')) {
    return { code: 'port_not_listening', message: notListening(port, listening, check.message) };
  }
  return {
    code: 'start_timeout',
    message:
      `An instance runs, but did not pass its health check in time. The last check said: ${check.message}. ` +
      'If it needs longer to start, raise health_check.start_timeout_s of the environment.',
  };
}

const noCheckFailed =
  'An instance did not become healthy in time: none of its health checks failed, but too few had been made. Raise ' +
  'health_check.start_timeout_s of the environment.';

function notListening(port: number, listening: Listening, said: string): string {
  const runs = `The program runs, but nothing listens on port ${port}`;
  if (!listening) return `${runs} (${said}). ${remedy}`;
  if (listening.loopback.includes(port)) {
    return (
      `The program listens on port ${port} of its loopback address alone, where nothing outside its container ` +
      'reaches it. Make it listen on 0.0.0.0.'
    );
  }
  const ports = [...new Set([...listening.open, ...listening.loopback])].sort((a, b) => a - b);
  const found = ports.length === 0 ? 'It listens on no port' : `It listens on ${list(ports)}`;
  const { exposed } = listening;
  const image = exposed.length === 0 ? 'its image exposes none' : `its image exposes ${list(exposed)}`;
  return `${runs}. ${found}; ${image}. ${remedy}`;
}

const remedy = 'Make it listen on the port in the variable PORT, or set the port of the environment.';

const list = (ports: number[]): string => (ports.length === 1 ? `port ${ports[0]}` : `ports ${ports.join(', ')}`);

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
