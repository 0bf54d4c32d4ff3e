// What a command is: verbs, each with its arguments, its options and what it does. Parsing, help and completion all read
// this, so that none of them can say something else than the others.

import type { Io } from '../io.ts';
import type { FoundService } from '../reach/found-service.ts';
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

/** What every command takes. */
export const common = {
  json: { type: 'boolean', about: 'print JSON: one document, or a line for each thing that is followed' },
  quiet: { type: 'boolean', short: 'q', about: 'no messages, only results' },
  help: { type: 'boolean', short: 'h', about: 'this text' },
} as const satisfies Options;

export const inProject = {
  project: {
    type: 'string',
    short: 'p',
    value: 'P',
    about: 'id, slug or name (default: SLUICE_PROJECT, or the only one)',
  },
} as const satisfies Options;

export const inEnvironment = {
  ...inProject,
  env: { type: 'string', short: 'e', value: 'E', about: 'the environment (default: production, or the only one)' },
} as const satisfies Options;

export const paged = {
  limit: { type: 'string', short: 'n', value: 'N', about: 'at most so many, newest first (default: 20)' },
} as const satisfies Options;

export interface CommandContext<O extends string = string> {
  args: string[];
  io: Io;
  out: Output;
  /** The service that was asked, once one was: errors name it. */
  found: FoundService | null;
  /** Aborted by Ctrl-C and SIGTERM, which end the process unless a command looks here. */
  readonly signal: AbortSignal;
  text(name: O): string | undefined;
  texts(name: O): string[];
  flag(name: O): boolean;
  whole(name: O, least: number, most: number): number | undefined;
}

export interface Verb {
  about: string;
  /** `NAME [OTHER] MORE…`: what is not in brackets has to be there. */
  args: string;
  options: Options;
  run(context: CommandContext): Promise<number>;
}

export interface Command {
  /** A command without verbs has the one verb ''. */
  verbs: Record<string, Verb>;
  /** The verb that is meant where none is given. */
  fallback?: string;
  notes?: string;
  examples: string[];
  /** Parses its arguments itself. */
  passOn?(args: string[]): Promise<number>;
}

interface VerbSpec<O extends Options> {
  about: string;
  args?: string;
  options?: O;
  run(context: CommandContext<(keyof O & string) | keyof typeof common>): Promise<number>;
}

export function verb<const O extends Options = Record<never, Option>>(spec: VerbSpec<O>): Verb {
  return {
    about: spec.about,
    args: spec.args ?? '',
    options: { ...spec.options, ...common },
    run: (context) => spec.run(context as CommandContext<(keyof O & string) | keyof typeof common>),
  };
}
