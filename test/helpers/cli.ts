// The command line with nothing of this environment but the PATH: a home and a folder to run in that are new and empty.
// Most commands run in the process of the test; on a terminal, or until a signal ends them, they are a process of their own.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { adminToken } from './app.ts';
import { type CliResult, runInProcess } from './cli-in-process.ts';
import { until } from './wait.ts';

export const program = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

const home = mkdtempSync(join(tmpdir(), 'sluice-cli-'));
const children = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(home, { recursive: true, force: true });
});

/** What tells the command line which service to call, as the administrator. */
export const envOf = (url: string): Record<string, string> => ({ SLUICE_API_URL: url, SLUICE_TOKEN: adminToken });

export type { CliResult };

export interface Started {
  child: ChildProcess;
  stdout(): string;
  stderr(): string;
  /** Resolves once standard output or error matches. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
  ended: Promise<CliResult>;
}

export interface CliOptions {
  cwd?: string;
  /** What it reads; null: the test writes to it later. */
  input?: string | null;
}

export function startCli(args: string[], env: Record<string, string>, options: CliOptions = {}): Started {
  return startProgram(process.execPath, [program, ...args], env, options);
}

/** On a terminal of its own, 60 columns wide. */
export function onTerminal(args: string[], env: Record<string, string>, options: CliOptions = {}): Started {
  const quoted = [process.execPath, program, ...args].map((word) => `'${word}'`).join(' ');
  const terminal = { TERM: 'xterm-256color', SHELL: '/bin/sh', ...env };
  return startProgram('script', ['-qec', `stty cols 60 rows 24; exec ${quoted}`, '/dev/null'], terminal, options);
}

export function startProgram(
  path: string,
  args: string[],
  env: Record<string, string>,
  { cwd = home, input = '' }: CliOptions = {},
): Started {
  const child = spawn(path, args, { cwd, stdio: 'pipe', env: { PATH: process.env.PATH, HOME: home, ...env } });
  children.add(child);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  child.stdin.on('error', () => {}); // it may end without reading
  if (input !== null) child.stdin.end(input);
  const ended = once(child, 'close').then(([code]) => {
    children.delete(child);
    return { code: code ?? 1, stdout, stderr };
  });
  const says = (pattern: RegExp) =>
    until(`${pattern}`, () => pattern.exec(stdout) ?? pattern.exec(stderr) ?? undefined, 60_000).catch((error) => {
      throw new Error(`${error.message}, said were:\n${stdout}\n${stderr}`);
    });
  return { child, stdout: () => stdout, stderr: () => stderr, says, ended };
}

/** What ends its own process, or is one. */
const needProcess = ['serve', 'completion'];

export async function cli(
  args: string[],
  env: Record<string, string> = {},
  options: CliOptions = {},
): Promise<CliResult> {
  if (needProcess.includes(args[0]!)) return startCli(args, env, options).ended;
  const { cwd = home, input } = options;
  return runInProcess(args, { env: { PATH: process.env.PATH, HOME: home, ...env }, cwd, input: input ?? '' });
}
