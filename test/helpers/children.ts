// The processes of a service, as the system knows them.
import { readdirSync, readFileSync } from 'node:fs';
import { until } from './wait.ts';

/** Those that a process started, by what their command line names. */
export function childrenOf(pid: number, entry: string): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
    return children.filter((child) => child > 0 && commandOf(child).includes(entry));
  } catch {
    return [];
  }
}

const statusOf = (pid: number): string => readFileSync(`/proc/${pid}/status`, 'utf8');

export const parentOf = (pid: number): number => Number(/^PPid:\s*(\d+)$/m.exec(statusOf(pid))![1]);

/** A letter, as in proc(5); empty: there is no such process or thread. */
function stateOf(pid: number): string {
  try {
    return /^State:\s*(\w)/m.exec(statusOf(pid))![1]!;
  } catch {
    return '';
  }
}

const threadsOf = (pid: number): number[] => readdirSync(`/proc/${pid}/task`).map(Number);

/** Stops a process until SIGCONT. Its threads go on for a moment after the signal: this resolves when all stand still. */
export async function suspend(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  await until('it to stop', () => threadsOf(pid).every((thread) => ['T', ''].includes(stateOf(thread))));
}

export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

/** All that run this entry with this argument. */
export function processesOf(argument: string, entry: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => commandOf(pid).includes(entry) && commandOf(pid).includes(argument));
}

/** Until it has let go of its sockets and locks. The last of its threads does that, some time after its memory is freed. */
export function isAlive(pid: number): boolean {
  try {
    return !['Z', 'X', ''].includes(stateOf(pid)) || threadsOf(pid).length > 1;
  } catch {
    return false;
  }
}
