// One command: finds it, parses its words, runs it, and turns what it throws into lines for people and an exit code. An
// error that nothing here knows keeps its stack.
import type { SluiceError } from '../client/error.ts';
import { StartError } from '../lib/start-error.ts';
import { commands, names, resolveName } from './commands.ts';
import type { Command, CommandContext, Explained, FoundService } from './frame/command.ts';
import { commandHelp, overview } from './frame/help.ts';
import { parseCommand } from './frame/parse.ts';
import { didYouMean } from './frame/suggest.ts';
import { CliError, exit, type Io, UsageError } from './io.ts';
import { findLink } from './link.ts';
import { columnsOf } from './terminal/output.ts';
import { clean } from './terminal/table.ts';

export async function runCli(words: string[], io: Io): Promise<number> {
  if (words.length === 0 && isProjectKnown(io)) return runCommand('status', ['--brief'], io);
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

/** A broken link is reported by the command that reads it. */
function isProjectKnown({ env, cwd }: Io): boolean {
  if (env.SLUICE_PROJECT) return true;
  try {
    return findLink({ cwd }) !== null;
  } catch {
    return true;
  }
}

async function runCommand(name: string, words: string[], io: Io): Promise<number> {
  let command: Command | null = null;
  let context: CommandContext | null = null;
  try {
    command = await commands[name]!();
    const parsed = parseCommand(command, words, io);
    if ('exitCode' in parsed) {
      const columns = io.stdout.isTTY ? columnsOf(io.stdout) : null;
      io.stdout.write(`${commandHelp(name, command, parsed.verbName, columns)}\n`);
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

/** By name: the class itself is loaded only by commands that call a service. */
const isSluiceError = (error: unknown): error is SluiceError => (error as Error | null)?.name === 'SluiceError';

function explain(error: unknown, name: string, found: FoundService | null): Explained {
  const { code, lines } = reasonOf(error, name, found);
  return { code, lines: lines.map((line, index) => `${index === 0 ? 'sluice: ' : '  '}${line}`) };
}

function reasonOf(error: unknown, name: string, found: FoundService | null): Explained {
  if (error instanceof StartError) return { code: exit.settings, lines: error.lines };
  if (error instanceof UsageError) return { code: exit.usage, lines: [error.message, `See: sluice ${name} --help`] };
  if (error instanceof CliError) return { code: error.exitCode, lines: [error.message, ...error.advice] };
  if (isSluiceError(error)) return explainAnswer(error, found);
  const { code, stack, message } = error as NodeJS.ErrnoException;
  if ((error as Error).name === 'DatabaseUnreachable') return { code: exit.unreachable, lines: [message] };
  if (error instanceof TypeError && message.includes('of the path cannot be'))
    return { code: exit.usage, lines: ['An id cannot be empty or dots.', `See: sluice ${name} --help`] };
  if (code !== undefined && /^E[A-Z]+$/.test(code)) return { code: exit.failed, lines: [message] };
  return { code: exit.failed, lines: [stack ?? String(error)] };
}

function exitCodeOf({ code, status }: SluiceError): number {
  if (code === 'invalid_request') return exit.usage;
  if (code === 'aborted') return exit.interrupted;
  if (status === 401 || status === 403) return exit.notAllowed;
  if (status === 404) return exit.notFound;
  if (['network', 'timeout', 'unexpected_answer', 'shutting_down', 'database_unavailable'].includes(code))
    return exit.unreachable;
  return exit.failed;
}

function explainAnswer(error: SluiceError, found: FoundService | null): Explained {
  const code = exitCodeOf(error);
  const asked = found ? [`Asked ${found.url}, found by ${found.from}.`] : [];
  const where = code === exit.notAllowed || code === exit.unreachable ? asked : [];
  const lines = [clean(error.message), ...detailLines(error), ...adviceFor(error), ...where];
  if (error.requestId !== null)
    lines.push(`Request ${error.requestId} (${error.code}); see ${error.docs ?? 'the log'}`);
  return { code, lines };
}

/** Which field, and what is wrong with it, unless the message says the same already. */
const detailLines = ({ details, message }: SluiceError): string[] =>
  details
    .filter((detail) => !message.includes(detail.message))
    .map((detail) => `${clean(detail.path).replace(/^(body|query|params)\./, '')}: ${clean(detail.message)}`);

/** What to do, as commands of this command line; the page behind `docs` says it for the API. */
function adviceFor({ code, status, retryAfterS, details }: SluiceError): string[] {
  if (code === 'network') return ['Is it running? Start one with: sluice serve; look closer with: sluice doctor'];
  if (status === 401) return ['Log in with a valid token: sluice login'];
  if (code === 'deployment_in_progress') {
    const id = details.map(({ message }) => /dpl_[0-9a-z]{26}/.exec(message)?.[0]).find(Boolean);
    return [`Watch it: sluice deployments watch${id ? ` ${id}` : ''}; end it: sluice abort`];
  }
  if (code === 'environment_locked') return ['Unlock it when the reason is gone: sluice environments unlock'];
  if (code === 'environment_unknown') return ['See: sluice environments'];
  if (code === 'revision_not_eligible') return ['See which are: sluice revisions'];
  if (code === 'region_unavailable') return ['Nothing was done. Is its engine running? sluice doctor'];
  if (retryAfterS !== null) return [`Try again in ${retryAfterS} s.`];
  return [];
}
