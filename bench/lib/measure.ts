// What benchmarks share: load from wrk, which needs far less of the machine than the servers it measures, medians of
// turns, processor time, and the lines of a report.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface Load {
  url: string;
  connections: number;
  seconds: number;
  method?: string;
  /** Lua that returns the body of the next request; `n` counts them. */
  luaBody?: string;
  token: string;
}

/** Successful requests a second. An answer that is not 2xx makes the measurement void. */
export async function requestsPerSecond({ url, connections, seconds, method = 'GET', luaBody, token }: Load) {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-wrk-'));
  const script = join(dir, 'load.lua');
  const lines = [
    `wrk.method = "${method}"`,
    `wrk.headers["Authorization"] = "Bearer ${token}"`,
    ...(luaBody === undefined
      ? []
      : [
          'wrk.headers["Content-Type"] = "application/json"',
          'local n = 0',
          `request = function() n = n + 1; return wrk.format(nil, nil, nil, ${luaBody}) end`,
        ]),
  ];
  writeFileSync(script, lines.join('\n'));
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, url];
  try {
    const { stdout } = await promisify(execFile)('wrk', args);
    if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`not every request succeeded:\n${stdout}`);
    return Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)![1]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Measures each in turn, again and again, so that what disturbs the machine disturbs all of them; then the medians. */
export async function alternate<N extends string>(
  rounds: number,
  measures: Record<N, () => Promise<number> | number>,
): Promise<Record<N, number>> {
  const names = Object.keys(measures) as N[];
  const values = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<N, number[]>;
  for (let round = 0; round < rounds; round++) {
    for (const name of names) values[name].push(await measures[name]());
  }
  return Object.fromEntries(names.map((name) => [name, median(values[name])])) as Record<N, number>;
}

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
