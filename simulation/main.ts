// npm run simulate -- canary [--rollouts 1000]: see canary/main.ts.
// npm run simulate -- --seed 7 [--steps 2000], or --seeds 1..500, or --fault all: see docs/testing.md.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readCoverage } from './coverage.ts';
import { deliberateFaults, runWithFault } from './deliberate-faults.ts';
import type { Part } from './part.ts';
import { openWorkplace, type Result, runSeed, today } from './run.ts';

const seedsPerPart = 25;

/**
 * Many seeds in parts, each in a process of its own, as many at a time as there are processors. What crashed machines left
 * waiting stays in the memory of a process, which gets slower by it.
 */
async function runInParts({ from, to, ...options }: Part, onResult: (result: Result) => void): Promise<void> {
  let next = from;
  const runNext = async (): Promise<void> => {
    if (next > to) return;
    const part: Part = { ...options, from: next, to: Math.min(to, next + seedsPerPart - 1) };
    next = part.to + 1;
    await runPart(part, onResult);
    return runNext();
  };
  await Promise.all(Array.from({ length: availableParallelism() }, runNext));
}

async function runPart(part: Part, onResult: (result: Result) => void): Promise<void> {
  const child = fork(join(import.meta.dirname, 'part.ts'), [JSON.stringify(part)]);
  child.on('message', (result) => onResult(result as Result));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the simulation of seeds ${part.from} to ${part.to} ended with ${code}`);
}

if (process.argv[2] === 'canary') {
  await import('./canary/main.ts');
  process.exit();
}

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string' },
    steps: { type: 'string', default: '2000' },
    /** Shows what happened before an invariant broke. */
    trace: { type: 'boolean', default: false },
    /** Ends with the first seed that breaks one. */
    first: { type: 'boolean', default: false },
    /** By how many milliseconds clocks may jump. */
    'clock-jump': { type: 'string', default: String(today.switches.clockJumpMs) },
    /** Prints which states and transitions were reached, and fails where one never was. */
    coverage: { type: 'boolean', default: false },
    /** Puts a deliberate fault into a copy of the code and simulates that: a name, or `all`. */
    fault: { type: 'string' },
  },
});

const steps = Number(values.steps);
const switches = { ...today.switches, clockJumpMs: Number(values['clock-jump']) };
process.exitCode = values.fault === undefined ? await simulate() : simulateFaults(values.fault);

async function simulate(): Promise<number> {
  const [from = 1, to = from] = (values.seeds ?? values.seed).split('..').map(Number);
  const startedAt = performance.now();
  const results: Result[] = [];
  const onResult = (result: Result) => {
    results.push(result);
    if (result.breach || from === to) report(result);
  };
  if (from === to || values.first) await runHere(from, to, onResult);
  else await runInParts({ from, to, steps, switches }, onResult);
  close(results, (performance.now() - startedAt) / 1000);
  const isCovered = !values.coverage || showCoverage(results);
  return results.some(({ breach }) => breach) || !isCovered ? 1 : 0;
}

function showCoverage(results: Result[]): boolean {
  const { lines, missing } = readCoverage(results.map(({ coverage }) => coverage));
  for (const line of lines) console.log(line);
  for (const name of missing) console.log(`never reached: ${name}`);
  return missing.length === 0;
}

/** In order, up to the first that breaks an invariant. */
async function runHere(from: number, to: number, onResult: (result: Result) => void): Promise<void> {
  const workplace = await openWorkplace();
  for (let seed = from; seed <= to; seed++) {
    const result = await runSeed(workplace, { seed, steps, switches });
    onResult(result);
    if (result.breach) break;
  }
  workplace.clean();
}

function report({ seed, steps: taken, seconds, trace, breach, recent }: Result): void {
  if (!breach) {
    console.log(`seed ${seed}: ${taken} steps, ${seconds} s, trace ${trace}`);
    return;
  }
  if (values.trace) for (const line of recent) console.log(`  ${line}`);
  console.log(`seed ${seed}, step ${taken}: ${breach.invariant}: ${breach.message}`);
  console.log(`  again: npm run simulate -- --seed ${seed} --steps ${steps} --trace`);
}

function close(results: Result[], seconds: number): void {
  const sum = (count: (result: Result) => number) => results.reduce((total, result) => total + count(result), 0);
  const taken = sum((result) => result.steps);
  const names = Object.keys(results[0]?.counts ?? {});
  const counts = names.map((name) => `${sum((result) => result.counts[name]!)} ${name}`);
  const broken = results.filter(({ breach }) => breach).length;
  const speed = `${Math.round(taken / seconds)} a second`;
  console.log(`${results.length} seeds, ${taken} steps (${speed}): ${counts.join(', ')}; ${broken} broken`);
}

function simulateFaults(name: string): number {
  const chosen = name === 'all' ? Object.keys(deliberateFaults) : [name];
  let missed = 0;
  for (const one of chosen) {
    const fault = deliberateFaults[one];
    if (!fault) throw new Error(`there is no fault ${one}: ${Object.keys(deliberateFaults).join(', ')}`);
    const { found, output } = runWithFault(fault, values.seeds ?? '1..200', steps);
    if (!found) missed++;
    console.log(`${one}: ${found ? 'found' : 'NOT FOUND'}\n${output.replaceAll(/^/gm, '  ')}`);
  }
  return missed === 0 ? 0 : 1;
}
