// What a command may touch of the process around it, so that a test can run one without a process.
export interface Io {
  env: Record<string, string | undefined>;
  print(line: string): void;
}

export const processIo: Io = {
  env: process.env,
  print: (line) => process.stdout.write(`${line}\n`),
};

/** Wrong use of a command: shown with its help, exit code 2. */
export class UsageError extends Error {}
