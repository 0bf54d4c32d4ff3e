// From the words of a command line to a verb with its arguments and options, and to the context that it runs in.

import { constants } from 'node:os';
import { parseArgs } from 'node:util';
import { CliError, exit, type Io, UsageError } from '../io.ts';
import { createOutput } from '../terminal/output.ts';
import type { Command, CommandContext, Options, Verb } from './command.ts';
import { didYouMean } from './suggest.ts';

interface Parsed {
  verbName: string;
  verb: Verb;
  context: CommandContext;
}

/** The help is what is wanted: of a verb, or of the whole command where `verbName` is empty. */
interface HelpWanted {
  verbName: string;
  exitCode: number;
}

type Values = Record<string, string | boolean | (string | boolean)[] | undefined>;

export function optionsOf(command: Command): Options {
  return Object.assign({}, ...Object.values(command.verbs).map((verb) => verb.options));
}

export function parseCommand(command: Command, words: string[], io: Io): Parsed | HelpWanted {
  const { positionals, values } = readWords(words, optionsOf(command));
  const given = '' in command.verbs ? '' : positionals.shift();
  if (values.help === true) return { verbName: verbNamed(command, given ?? '') ? given! : '', exitCode: exit.done };
  if (given === undefined && command.helpWithoutVerb) return { verbName: '', exitCode: exit.usage };
  const verbName = given ?? command.fallback ?? '';
  const verb = verbNamed(command, verbName);
  if (verb === undefined) throw new UsageError(unknownVerb(command, verbName));
  const foreign = Object.keys(values).find((name) => !Object.hasOwn(verb.options, name));
  if (foreign !== undefined) throw new UsageError(`--${foreign} does not belong to ${verbName}.`);
  checkCount(verb, positionals);
  checkChoices(verb, values);
  return { verbName, verb, context: contextOf(positionals, values, io) };
}

function verbNamed({ verbs }: Command, name: string): Verb | undefined {
  return Object.hasOwn(verbs, name) ? verbs[name] : undefined;
}

function unknownVerb(command: Command, word: string): string {
  const known = Object.keys(command.verbs);
  if (word === '') return `One of ${known.join(', ')} is needed.`;
  if (command.unknownVerb) return command.unknownVerb(word);
  return `There is no ${word} here.${didYouMean(word, known) || ` Verbs: ${known.join(', ')}.`}`;
}

function readWords(words: string[], options: Options): { positionals: string[]; values: Values } {
  try {
    return parseArgs({ args: words, allowPositionals: true, options }) as { positionals: string[]; values: Values };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!code?.startsWith('ERR_PARSE_ARGS')) throw error;
    const unknown = code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION' ? /'(-{1,2}[^']+)'/.exec(message)?.[1] : undefined;
    if (unknown === undefined) throw new UsageError(message.split('. ')[0]!.replace(/\.?$/, '.'));
    const meant = didYouMean(unknown.replace(/^-+/, ''), Object.keys(options), '--');
    throw new UsageError(`There is no option ${unknown}.${meant}`);
  }
}

/** How many arguments `NAME [OTHER] MORE…` takes. */
export function countOf(args: string): { least: number; most: number } {
  const names = args.split(' ').filter((name) => name !== '');
  return {
    least: names.filter((name) => !name.startsWith('[')).length,
    most: names.some((name) => name.includes('…')) ? Number.POSITIVE_INFINITY : names.length,
  };
}

function checkCount({ args, missing }: Verb, given: string[]): void {
  const { least, most } = countOf(args);
  if (given.length > most) throw new UsageError(`${given[most]} is one argument too many.`);
  if (given.length >= least) return;
  const names = args.split(' ').filter((name) => !name.startsWith('['));
  throw new UsageError(missing ?? `${names[given.length]} is missing.`);
}

function checkChoices({ options }: Verb, values: Values): void {
  for (const [name, value] of Object.entries(values)) {
    const choices = options[name]?.choices;
    if (choices === undefined) continue;
    for (const one of [value].flat() as string[]) {
      if (choices.includes(one)) continue;
      throw new UsageError(
        `There is no ${name} ${one}.${didYouMean(one, choices) || ` There are: ${choices.join(', ')}.`}`,
      );
    }
  }
}

function contextOf(args: string[], values: Values, io: Io): CommandContext {
  const text = (name: string) => values[name] as string | undefined;
  return {
    args,
    io,
    out: createOutput(io, values.json === true, values.quiet === true),
    found: null,
    get signal() {
      return interruption();
    },
    text,
    texts: (name) => (values[name] ?? []) as string[],
    flag: (name) => values[name] === true,
    whole(name, least, most) {
      const given = text(name);
      if (given === undefined) return undefined;
      const number = Number(given);
      if (/^\d{1,9}$/.test(given) && number >= least && number <= most) return number;
      throw new UsageError(`--${name} takes a whole number from ${least} to ${most}.`);
    },
  };
}

let controller: AbortController | null = null;

/**
 * Aborted by the first SIGINT or SIGTERM. Listening begins with the first call, so that a signal ends
 * commands that never call it, as it ends any process; a second signal ends the process at once.
 */
export function interruption(): AbortSignal {
  if (controller) return controller.signal;
  const made = new AbortController();
  controller = made;
  const onSignal = (signal: 'SIGINT' | 'SIGTERM') => {
    if (made.signal.aborted) process.exit(128 + constants.signals[signal]);
    made.abort(signal);
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return made.signal;
}

const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `1h` is an hour ago; anything else is a time. `name`: of the option. */
export function readTime(text: string, name: string, nowMs: number): string {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const ms = unit === undefined ? Date.parse(text) : nowMs - Number(count) * unitMs[unit]!;
  if (!Number.isNaN(ms)) return new Date(ms).toISOString();
  throw new CliError(exit.usage, `--${name} must be a time, or how long ago: 30s, 15m, 1h, 2d.`);
}
