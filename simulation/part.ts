// Some of many seeds, in a process of its own: main.ts starts one after another.
import { type Options, openWorkplace, runSeed } from './run.ts';

export interface Part extends Omit<Options, 'seed'> {
  from: number;
  to: number;
}

const { from, to, ...options } = JSON.parse(process.argv[2]!) as Part;
const workplace = await openWorkplace();
for (let seed = from; seed <= to; seed++) process.send!(await runSeed(workplace, { ...options, seed }));
workplace.clean();
process.disconnect!();
