// One line of a benchmark on the terminal. Where BENCH_RESULTS names a file it gets the same line as JSON, from which
// `npm run bench -- --write` makes docs/benchmarks.md.
import { appendFileSync, readFileSync } from 'node:fs';

export interface Result {
  what: string;
  measured: string;
  /** null: not compared with a target. */
  target: string | null;
  met: boolean | null;
}

export function report(name: string, value: string, target: string, met: boolean, of: string): void {
  console.log(`${met ? 'met   ' : 'MISSED'}  ${name.padEnd(52)} ${value.padStart(7)}  (${target})  ${of}`);
  record({ what: name, measured: value, target, met });
}

/** Not compared with a target. */
export function note(name: string, value: string, of = ''): void {
  console.log(`        ${name.padEnd(52)} ${value.padStart(7)}  ${of}`);
  record({ what: name, measured: value, target: null, met: null });
}

function record(result: Result): void {
  const file = process.env.BENCH_RESULTS;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(result)}\n`);
}

export function readResults(file: string): Result[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Result);
}
