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

export function parentOf(pid: number): number {
  return Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);
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

export const isAlive = (pid: number): boolean => commandOf(pid) !== '';
