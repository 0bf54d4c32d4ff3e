// Measuring side by side: rivals take turns within one run, so that whatever else the machine does falls on all of them.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { report } from '../lib/report.ts';

const execute = promisify(execFile);

export interface Load {
  url: string;
  seconds: number;
  connections: number;
  headers?: Record<string, string>;
}

/** Answers a second, by wrk; a run with a failed answer does not count as a measurement. */
export async function requestsPerSecond({ url, seconds, connections, headers = {} }: Load): Promise<number> {
  const extra = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const { stdout } = await execute('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, ...extra, url]);
  if (/Non-2xx or 3xx|Socket errors/.test(stdout)) throw new Error(`${url}: ${stdout}`);
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)![1]);
}

export const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

export interface Measured<Name extends string> {
  /** Median over the rounds. */
  of: Record<Name, number>;
  /** Least over the rounds: for times, the one that other programs disturbed least. */
  least: Record<Name, number>;
  /** Median of the rounds' own ratios: a round's rivals ran one after the other, under the same load. */
  ratio(a: Name, b: Name): number;
}

/** Runs every rival in turn, several rounds, after one round that does not count. */
export async function inTurns<Name extends string>(
  rounds: number,
  rivals: Record<Name, () => Promise<number>>,
): Promise<Measured<Name>> {
  const names = Object.keys(rivals) as Name[];
  const measured = new Map<Name, number[]>(names.map((name) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const name of names) {
      const value = await rivals[name]();
      if (round > 0) measured.get(name)!.push(value);
    }
  }
  const each = (pick: (values: number[]) => number) =>
    Object.fromEntries(names.map((name) => [name, pick(measured.get(name)!)])) as Record<Name, number>;
  return {
    least: each((values) => Math.min(...values)),
    of: each(median),
    ratio: (a, b) => median(measured.get(a)!.map((value, i) => value / measured.get(b)![i]!)),
  };
}

export async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

const verdicts: boolean[] = [];

/** One line for each measurement. */
export function judge(what: string, value: string, target: string, met: boolean, of: string): void {
  verdicts.push(met);
  report(what, value, target, met, of);
}

export const allMet = () => verdicts.every(Boolean);
