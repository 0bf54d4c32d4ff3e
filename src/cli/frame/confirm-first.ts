import { CliError, exit } from '../io.ts';
import { confirm } from '../terminal/prompt.ts';
import type { CommandContext } from './command.ts';

/** For what cannot be taken back: a question on a terminal, --yes elsewhere. */
export async function confirmFirst(context: CommandContext<'yes'>, question: string): Promise<void> {
  if (context.flag('yes')) return;
  if (!context.io.stdin.isTTY) throw new CliError(exit.usage, 'Nobody can be asked here.', 'Add --yes if it is meant.');
  if (!(await confirm(context.io, question))) throw new CliError(exit.interrupted, 'Nothing was done.');
}
