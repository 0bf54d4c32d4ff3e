// npm run simulate -- --seed 7 [--steps 2000], or --seeds 1..500: see docs/testing.md.
import { parseArgs } from 'node:util';
import { openWorkplace, type Result, runSeed, today } from './run.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    steps: { type: 'string', default: '2000' },
    trace: { type: 'boolean', default: false },
  },
});

const [first, last] = (values.seeds ?? `${values.seed ?? 1}..${values.seed ?? 1}`).split('..').map(Number) as [
  number,
  number,
];
const workplace = await openWorkplace();
const startedAt = performance.now();
const total: Record<string, number> = {};
const broken: Result[] = [];
let seeds = 0;
let steps = 0;
for (let seed = first; seed <= last; seed++) {
  const result = await runSeed(workplace, { ...today, seed, steps: Number(values.steps) });
  seeds++;
  steps += result.steps;
  for (const [name, count] of Object.entries(result.counts)) total[name] = (total[name] ?? 0) + count;
  if (result.breach) {
    broken.push(result);
    const { invariant, message } = result.breach;
    if (values.trace) for (const line of result.recent) console.log(`  ${line}`);
    console.log(`seed ${seed}, step ${result.steps}: ${invariant}: ${message}`);
    console.log(`  again: npm run simulate -- --seed ${seed} --steps ${values.steps} --trace`);
  } else if (first === last)
    console.log(`seed ${seed}: ${result.steps} steps, ${result.seconds} s, trace ${result.trace}`);
}
workplace.clean();
const s = (performance.now() - startedAt) / 1000;
const counts = Object.entries(total).map(([name, count]) => `${count} ${name}`);
console.log(
  `${seeds} seeds, ${steps} steps in ${s.toFixed(1)} s (${Math.round(steps / s)}/s): ${counts.join(', ')}; ${broken.length} broken`,
);
process.exitCode = broken.length === 0 ? 0 : 1;
