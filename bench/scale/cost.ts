// What a piece of work costs: time, processor time of this process and of PostgreSQL, statements.
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { note } from '../lib/report.ts';

export interface Cost {
  units: number;
  seconds: number;
  /** Of this process, and of PostgreSQL with all its backends. */
  ownCpuS: number;
  databaseCpuS: number;
  statements: number;
}

let statements = 0;
const send = pg.Client.prototype.query;
/** Every statement of this process goes through here, `begin` and `commit` too. */
pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
  statements++;
  return (send as (...args: unknown[]) => unknown).apply(this, args);
} as typeof send;

const ticksPerSecond = 100;

function statOf(pid: number): number[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
}

/** The server's first process counts those of its children that have ended. */
function databaseCpuS(server: number): number {
  const children = readFileSync(`/proc/${server}/task/${server}/children`, 'utf8').trim().split(' ').map(Number);
  const [, , , , , , , , , , , user, system, endedUser, endedSystem] = statOf(server);
  const ended = user! + system! + endedUser! + endedSystem!;
  return children.reduce((sum, pid) => sum + statOf(pid)[11]! + statOf(pid)[12]!, ended) / ticksPerSecond;
}

/** `server`: the process id of PostgreSQL. `work` gives how many units it did. */
export async function costOf(server: number, work: () => Promise<number>): Promise<Cost> {
  const [ownBefore, databaseBefore, sentBefore] = [process.cpuUsage(), databaseCpuS(server), statements];
  const startedAt = performance.now();
  const units = await work();
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(ownBefore);
  return {
    units,
    seconds,
    ownCpuS: (user + system) / 1e6,
    databaseCpuS: databaseCpuS(server) - databaseBefore,
    statements: statements - sentBefore,
  };
}

const count = (value: number): string => Math.round(value).toLocaleString('en');
const micros = (seconds: number, units: number): string => `${((seconds / units) * 1e6).toFixed(0)} µs`;

/** `unit`: what was counted, in the singular. */
export function reportCost(name: string, unit: string, cost: Cost): void {
  const { units, seconds, ownCpuS, databaseCpuS, statements } = cost;
  note(
    name,
    `${count(units / seconds)}/s`,
    `${count(units)} in ${seconds.toFixed(1)} s; each ${unit}: ${micros(ownCpuS, units)} here, ` +
      `${micros(databaseCpuS, units)} in PostgreSQL, ${(statements / units).toFixed(2)} statements`,
  );
}
