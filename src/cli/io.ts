// What a command may use of its process. Tests hand in their own, and need no process to run a command.
import type { ReadStream } from 'node:tty';

export interface Sink {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
  rows?: number;
}

export interface Io {
  env: Record<string, string | undefined>;
  cwd: string;
  stdin: NodeJS.ReadableStream & Partial<Pick<ReadStream, 'isTTY' | 'setRawMode'>>;
  stdout: Sink;
  stderr: Sink;
  now(): number;
}

export const processIo: Io = {
  env: process.env,
  cwd: process.cwd(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  now: Date.now,
};

/** Wrong use of a command: printed with a hint at its help, exit code 2. */
export class UsageError extends Error {}

/** An error a person can fix: one line says what is wrong, further ones what to do. */
export class CliError extends Error {
  readonly exitCode: number;
  readonly advice: string[];

  constructor(exitCode: number, message: string, ...advice: string[]) {
    super(message);
    this.exitCode = exitCode;
    this.advice = advice;
  }
}

/** Documented in overview.txt and docs/cli.md. */
export const exit = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  notAllowed: 4,
  unreachable: 5,
  settings: 78,
  interrupted: 130,
} as const;
