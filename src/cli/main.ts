// sluice COMMAND: finds the command, reads what is asked, and tells errors in words.
import { commands, names, resolveName } from './commands.ts';
import type { CommandContext } from './frame/command.ts';
import { explain } from './frame/explain.ts';
import { commandHelp, overview } from './frame/help.ts';
import { parseCommand } from './frame/parse.ts';
import { didYouMean } from './frame/suggest.ts';
import { exit, type Io, processIo } from './io.ts';

export async function main(words: string[], io: Io): Promise<number> {
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
  let context: CommandContext | null = null;
  try {
    const command = await commands[name]!();
    if (command.passOn) return await command.passOn(words);
    const parsed = parseCommand(command, words, io);
    context = parsed.context;
    if (context.flag('help')) {
      io.stdout.write(`${commandHelp(name, command, parsed.verbName)}\n`);
      return exit.done;
    }
    return await parsed.verb.run(context);
  } catch (error) {
    const { code, lines } = explain(error, name, context?.found ?? null);
    for (const [index, line] of lines.entries()) io.stderr.write(`${index === 0 ? 'sluice: ' : '  '}${line}\n`);
    return code;
  }
}

// Whoever reads what is printed may stop reading: `sluice events -f | head -1`.
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? exit.done : exit.failed),
);

process.exitCode = await main(process.argv.slice(2), processIo);
