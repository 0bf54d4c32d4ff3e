// npm run simulate -- canary [--rollouts 1000] [--only text]: the Monte-Carlo study of how canaries are judged. Its cells are the
// worlds that docs/decisions/canary-analysis.md speaks of; it fails where a promise does not hold.
import { parseArgs } from 'node:util';
import { equalWorlds, percent, run, worseWorlds } from './cells.ts';

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: { rollouts: { type: 'string', default: '1000' }, only: { type: 'string', default: '' } },
});
const rollouts = Number(values.rollouts);
/** Of canaries that are equal to stable, this many may be undone. */
const mostUndone = 0.01;

const isChosen = ([name]: [string, unknown]) => name.includes(values.only);
let broken = 0;

function note(isKept: boolean, line: string): void {
  if (!isKept) broken++;
  console.log(`${isKept ? ' ' : '✖'} ${line}`);
}

console.log(`equal canaries that were undone, of ${rollouts} (${percent(mostUndone)} are allowed)`);
for (const [name, world] of [...equalWorlds()].filter(isChosen)) {
  const ended = run(name, world, rollouts);
  const undone = ended.filter(({ verdict }) => verdict === 'bad').length;
  const replaced = ended.filter((one) => one.replaced).length;
  const remark = replaced > 0 ? `, an instance replaced in ${percent(replaced / rollouts)}` : '';
  note(undone / rollouts <= mostUndone, `${percent(undone / rollouts).padStart(7)}  ${name}${remark}`);
}
console.log('\nworse canaries that were found, and after how many of their requests (median)');
for (const [name, { world, found: wanted }] of [...worseWorlds()].filter(isChosen)) {
  const found = run(name, world, rollouts).filter(({ verdict }) => verdict === 'bad');
  const requests = found.map((one) => one.requests).sort((a, b) => a - b)[found.length >> 1];
  note(
    found.length / rollouts >= wanted,
    `${percent(found.length / rollouts).padStart(7)}  ${name}: ${requests ?? '–'}`,
  );
}
if (broken > 0) console.log(`\n${broken} cells are not as promised`);
process.exitCode = broken > 0 ? 1 : 0;
