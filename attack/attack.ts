// What an attack is, and the table of what was tried and what held.
import type { Target } from './target.ts';

export interface Outcome {
  tried: number;
  /** What did not hold, one line each. */
  broken: string[];
  note?: string;
  /** Figures, with a head. */
  table?: string[][];
}

export interface Attack {
  name: string;
  /** It measures: a service is started for it alone, and the short form leaves it out. */
  isMeasured?: true;
  /** It takes long and has another place in `npm test`: the short form leaves it out. */
  isLong?: true;
  /** `short`: as in `npm test`, in a few seconds, on a machine that may be busy with something else. */
  run(target: Target, short: boolean): Promise<Outcome>;
}

export interface Row extends Outcome {
  name: string;
  seconds: number;
}

export async function carryOut({ name, run }: Attack, target: Target, short: boolean): Promise<Row> {
  const startedAt = performance.now();
  const outcome = await run(target, short).catch((error: Error) => ({
    tried: 0,
    broken: [error.stack ?? String(error)],
  }));
  return { name, ...outcome, seconds: (performance.now() - startedAt) / 1000 };
}

export function tableOf(rows: Row[]): string[] {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const line = (name: string, tried: string, held: string, seconds: string, note: string) =>
    `${name.padEnd(width)} ${tried.padStart(6)} ${held.padStart(6)} ${seconds.padStart(6)}  ${note}`.trimEnd();
  return [
    line('attack', 'tried', 'held', 's', ''),
    ...rows.flatMap(({ name, tried, broken, seconds, note = '', table = [] }) => [
      line(name, String(tried), String(tried - broken.length), seconds.toFixed(1), note),
      ...table.map(([what, ...cells]) => `  ${what!.padEnd(32)}${cells.map((cell) => cell.padStart(12)).join('')}`),
      ...broken.slice(0, 10).map((what) => `  ✖ ${what}`),
    ]),
  ];
}
