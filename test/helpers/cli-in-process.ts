// One command of the command line in the process of the test: for all that needs neither a terminal nor a signal.
import { Readable } from 'node:stream';
import { runCli } from '../../src/cli/run-cli.ts';

export interface CliResult {
  code: number;
  stdout: string;
  stderr: string;
}

interface Surroundings {
  env: Record<string, string | undefined>;
  cwd: string;
  input?: string;
}

export async function runInProcess(args: string[], { env, cwd, input = '' }: Surroundings): Promise<CliResult> {
  const written = { stdout: '', stderr: '' };
  const sink = (name: 'stdout' | 'stderr') => ({ write: (text: string) => (written[name] += text) });
  const code = await runCli(args, {
    env,
    cwd,
    stdin: Readable.from([input]),
    stdout: sink('stdout'),
    stderr: sink('stderr'),
    now: Date.now,
  });
  return { code, ...written };
}
