// What a command may touch of the process around it, so that a test can run one without a process.
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

/** Wrong use of a command: shown with a hint at its help, exit code 2. */
export class UsageError extends Error {}

/** Something a person can mend, told in a line, with what to do in further ones. */
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
