import { CliError, exit } from '../io.ts';
import { confirm } from '../terminal/prompt.ts';
import type { CommandContext } from './command.ts';

/** For what cannot be undone: asks on a terminal; elsewhere --yes has to be given. */
export async function confirmFirst(context: CommandContext<'yes'>, question: string): Promise<void> {
  if (context.flag('yes')) return;
  if (!context.io.stdin.isTTY) throw new CliError(exit.usage, 'Not a terminal: pass --yes.');
  if (!(await confirm(context.io, question))) throw new CliError(exit.interrupted, 'Nothing was done.');
}
