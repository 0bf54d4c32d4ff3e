// The processor time of processes, as the system counts it.
import { readFileSync } from 'node:fs';

const ticksPerSecond = 100; // USER_HZ, the same on every Linux

/** Seconds of all threads so far, in user mode and in the kernel. */
export function cpuSeconds(pids: number[]): number {
  return pids.reduce((sum, pid) => sum + ticksOf(pid), 0) / ticksPerSecond;
}

function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
