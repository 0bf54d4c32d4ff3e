// npm run attack [-- --short] [words of names …]: attacks a service on loopback, and prints what was tried and what held.

import { type Attack, carryOut, type Row, tableOf } from './attack.ts';
import { attacks } from './attacks.ts';
import { startTarget } from './target.ts';

const short = process.argv.includes('--short');
const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const chosen = attacks
  .filter(({ name }) => words.every((word) => name.includes(word)))
  .filter(({ isLong }) => !(short && isLong));
const rows: Row[] = [];

/** One after another, on a service that is started for them. */
async function attackOne(group: Attack[]): Promise<void> {
  const target = await startTarget();
  try {
    for (const attack of group) {
      rows.push(await carryOut(attack, target, short));
      console.error(`${rows.at(-1)!.broken.length === 0 ? '✔' : '✖'} ${attack.name}`);
    }
  } finally {
    await target.stop();
  }
}

const isAlone = ({ isMeasured }: Attack) => !short && isMeasured === true;
for (const attack of chosen.filter(isAlone)) await attackOne([attack]);
if (!chosen.every(isAlone)) await attackOne(chosen.filter((attack) => !isAlone(attack)));
for (const line of tableOf(rows)) console.log(line);
process.exitCode = rows.length > 0 && rows.every(({ broken }) => broken.length === 0) ? 0 : 1;
