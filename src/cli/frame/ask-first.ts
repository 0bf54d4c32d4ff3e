import { CliError, exit } from '../io.ts';
import { confirm } from '../terminal/prompt.ts';
import type { Ask } from './command.ts';

/** For what cannot be taken back: a question on a terminal, --yes elsewhere. */
export async function askFirst(ask: Ask<'yes'>, question: string): Promise<void> {
  if (ask.flag('yes')) return;
  if (!ask.io.stdin.isTTY) throw new CliError(exit.usage, 'Nobody can be asked here.', 'Add --yes if it is meant.');
  if (!(await confirm(ask.io, question))) throw new CliError(exit.interrupted, 'Nothing was done.');
}
