// What a command is: verbs, each with its arguments, its options and what it does. Parsing, help and completion all read
// this declaration, so they cannot disagree.
import type { Io } from '../io.ts';
import type { Output } from '../terminal/output.ts';

export interface Option {
  type: 'string' | 'boolean';
  about: string;
  short?: string;
  multiple?: true;
  /** What stands for the value in the help. */
  value?: string;
  choices?: readonly string[];
}

export type Options = Record<string, Option>;

const helpOption = { help: { type: 'boolean', short: 'h', about: 'this text' } } as const satisfies Options;

/** What every verb takes, except that those with `textOnly` take just --help. */
export const common = {
  json: { type: 'boolean', about: 'print JSON: one document, or one line per item with --follow' },
  quiet: { type: 'boolean', short: 'q', about: 'no messages, only results' },
  ...helpOption,
} as const satisfies Options;

export const inProject = {
  project: {
    type: 'string',
    short: 'p',
    value: 'P',
    about: 'id, slug or name (default: SLUICE_PROJECT, the linked one, or the only one)',
  },
} as const satisfies Options;

export const inEnvironment = {
  ...inProject,
  env: {
    type: 'string',
    short: 'e',
    value: 'E',
    about: 'the environment (default: the linked one, production, or the only one)',
  },
} as const satisfies Options;

export const paged = {
  limit: { type: 'string', short: 'n', value: 'N', about: 'at most this many, newest first (default: 20)' },
} as const satisfies Options;

export interface CommandContext<O extends string = string> {
  args: string[];
  io: Io;
  out: Output;
  /** The service the command called, once it did: errors name it. */
  found: FoundService | null;
  /** Aborted by Ctrl-C and SIGTERM; they end the process unless the command has read this. */
  readonly signal: AbortSignal;
  text(name: O): string | undefined;
  texts(name: O): string[];
  flag(name: O): boolean;
  whole(name: O, least: number, most: number): number | undefined;
}

/** An error, as people are told of it. */
export interface Explained {
  code: number;
  /** As they are printed. */
  lines: string[];
}

export interface Verb {
  about: string;
  /** `NAME [OTHER] MORE…`: what is not in brackets has to be there. */
  args: string;
  /** The error where an argument is missing; without it, the frame names the argument. */
  missing?: string;
  options: Options;
  run(context: CommandContext): Promise<number>;
}

export interface Command {
  /** A command without verbs has the one verb ''. */
  verbs: Record<string, Verb>;
  /** The verb that is meant where none is given. */
  fallback?: string;
  /** Without a verb it prints its help; the exit code is that of wrong use. */
  helpWithoutVerb?: true;
  notes?: string;
  examples: string[];
  /** The error where a verb does not exist; without it, the frame suggests one. */
  unknownVerb?(word: string): string;
  /** Explains errors that only this command knows, or formats all of them its own way; null leaves it to the frame. */
  explain?(error: unknown, context: CommandContext | null): Explained | null;
}

interface VerbSpec<O extends Options> {
  about: string;
  args?: string;
  missing?: string;
  options?: O;
  /** Prints text only: no --json and no --quiet. */
  textOnly?: true;
  run(context: CommandContext<(keyof O & string) | keyof typeof common>): Promise<number>;
}

export function verb<const O extends Options = Record<never, Option>>(spec: VerbSpec<O>): Verb {
  return {
    about: spec.about,
    args: spec.args ?? '',
    ...(spec.missing !== undefined && { missing: spec.missing }),
    options: { ...spec.options, ...(spec.textOnly ? helpOption : common) },
    run: (context) => spec.run(context as CommandContext<(keyof O & string) | keyof typeof common>),
  };
}

/** The service a command talks to, and the token it uses there. */
export interface FoundService {
  url: string;
  token: string;
  /** Where address and token came from, for people. */
  from: string;
}
