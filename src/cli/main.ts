// sluice COMMAND: finds the command, parses its words, runs it and prints errors for people.
import '../lib/source-stacks.ts';
import { commands, names, resolveName } from './commands.ts';
import type { Command, CommandContext } from './frame/command.ts';
import { explain } from './frame/explain.ts';
import { commandHelp, overview } from './frame/help.ts';
import { parseCommand } from './frame/parse.ts';
import { didYouMean } from './frame/suggest.ts';
import { exit, type Io, processIo } from './io.ts';

async function main(words: string[], io: Io): Promise<number> {
  const [first = '--help', ...rest] = words;
  const asksHelp = ['--help', '-h', 'help'].includes(first);
  if (asksHelp && rest.length === 0) {
    io.stdout.write(overview());
    return exit.done;
  }
  if (first === '--version' || first === 'version') {
    io.stdout.write(`sluice ${(await import('../version.ts')).version}\n`);
    return exit.done;
  }
  const given = asksHelp ? rest[0]! : first;
  const name = resolveName(given);
  if (name === undefined) {
    io.stderr.write(`sluice: There is no command ${given}.${didYouMean(given, names)}\nSee: sluice --help\n`);
    return exit.usage;
  }
  return runCommand(name, asksHelp ? [...rest.slice(1), '--help'] : rest, io);
}

async function runCommand(name: string, words: string[], io: Io): Promise<number> {
  let command: Command | null = null;
  let context: CommandContext | null = null;
  try {
    command = await commands[name]!();
    const parsed = parseCommand(command, words, io);
    if ('exitCode' in parsed) {
      io.stdout.write(`${commandHelp(name, command, parsed.verbName)}\n`);
      return parsed.exitCode;
    }
    context = parsed.context;
    return await parsed.verb.run(context);
  } catch (error) {
    const { code, lines } = command?.explain?.(error, context) ?? explain(error, name, context?.found ?? null);
    for (const line of lines) io.stderr.write(`${line}\n`);
    return code;
  }
}

// The reader of a pipe may stop reading: `sluice events -f | head -1`.
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? exit.done : exit.failed),
);

process.exitCode = await main(process.argv.slice(2), processIo);
