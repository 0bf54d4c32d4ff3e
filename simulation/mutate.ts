// npm run mutate [-- name …] [--seeds 1..100] [--steps 2000]: puts each deliberate fault into a copy of the code, runs the simulation
// on it and the tests that should know, and prints the score. It fails where nothing finds a fault that has no reason for it.
import { parseArgs } from 'node:util';
import { deliberateFaults, runWithFault, testsFind } from './deliberate-faults.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seeds: { type: 'string', default: '1..100' }, steps: { type: 'string', default: '2000' } },
});

const unknown = positionals.filter((name) => deliberateFaults[name] === undefined);
if (unknown.length > 0) {
  console.error(`there is no fault ${unknown.join(', ')}; there are: ${Object.keys(deliberateFaults).join(', ')}`);
  process.exit(2);
}

const chosen = Object.entries(deliberateFaults).filter(
  ([name]) => positionals.length === 0 || positionals.includes(name),
);
const score = { simulation: 0, tests: 0, either: 0, unexplained: 0 };
for (const [name, fault] of chosen) {
  const { found, output } = runWithFault(fault, values.seeds, Number(values.steps));
  const known = fault.tests ? testsFind(fault) : false;
  if (found) score.simulation++;
  if (known) score.tests++;
  if (found || known) score.either++;
  else if (fault.survives === undefined) score.unexplained++;
  const line = output.split('\n').find((one) => one.startsWith('seed ')) ?? 'not found';
  const by = [
    found ? line : `not by the simulation, seeds ${values.seeds}`,
    ...(known ? [fault.tests!.join(', ')] : []),
  ];
  console.log(`${found || known ? ' ' : '✖'} ${name}: ${by.join('; ')}`);
  if (!found && !known) console.log(`    ${fault.survives ?? 'nothing finds it, and there is no reason for that'}`);
}
console.log(
  `${chosen.length} faults: ${score.simulation} found by the simulation, ${score.tests} by the tests that were asked, ${score.either} by one of them`,
);
process.exitCode = score.unexplained > 0 ? 1 : 0;
