// How many files and connections a process may have open. Node raises its limit to the most that the system allows before
// it runs anything, so what is read here is that.
import { readFileSync } from 'node:fs';

/** For the database, its log, pipes to other processes, and what a request opens for a moment. */
const forOthers = 256;

/** null: the system does not say, or there is no limit. */
export function readOpenFileLimit(read = () => readFileSync('/proc/self/limits', 'utf8')): number | null {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(read())?.[1];
    return limit === undefined ? null : Number(limit);
  } catch {
    return null;
  }
}

/** So many connections, but no more than there are descriptors for, where each may need `filesEach`. At least one. */
export function capConnections(wanted: number, filesEach: number, limit: number | null): number {
  if (limit === null) return wanted;
  const reserved = Math.min(forOthers, Math.floor(limit / 4));
  return Math.max(1, Math.min(wanted, Math.floor((limit - reserved) / filesEach)));
}
