// The processes of a service, as the system knows them.
import { readdirSync, readFileSync } from 'node:fs';

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

/** By SIGSTOP, which takes effect a moment later. */
export const isStopped = (pid: number): boolean => /^State:\s*T/m.test(statusOf(pid));

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
    return !/^State:\s*[ZX]/m.test(statusOf(pid)) || readdirSync(`/proc/${pid}/task`).length > 1;
  } catch {
    return false;
  }
}
